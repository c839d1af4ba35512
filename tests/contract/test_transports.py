"""Both HTTP sides keep the same contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from hmars.llm.aio import AioTransport
from hmars.llm.openai_wire import OpenAITransport
from hmars.llm.redact import Redactor
from hmars.llm.transport import ConnectionFailed, Transport
from tests.scripted_server import Reply, ScriptedServer

Make = Callable[[str], Transport]
BODY = {"model": "scripted", "messages": [{"role": "user", "content": "Grüße 💡 \udc80"}]}


@pytest.fixture(params=["aiohttp", "openai"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    opened: list[Transport] = []

    def build(url: str) -> Transport:
        headers = {"X-Team": "lamps"}
        transport: Transport = (
            AioTransport("the-key", headers, 8, use_proxy=False)
            if request.param == "aiohttp"
            else OpenAITransport(url, "the-key", headers, 8, Redactor(["the-key"]))
        )
        opened.append(transport)
        return transport

    yield build
    for transport in opened:
        await transport.close()


async def test_a_post_carries_body_key_and_headers_and_returns_status_and_text(make: Make) -> None:
    with ScriptedServer("warm") as server:
        url = f"{server.base_url}/chat/completions?api-version=7"
        reply = await make(server.base_url).send("POST", url, BODY, {"X-Session-ID": "r1"})
    assert reply.status == 200
    assert '"warm"' in reply.text
    seen = server.requests[0]
    assert seen.headers["Authorization"] == "Bearer the-key"
    assert (seen.headers["X-Team"], seen.headers["X-Session-ID"]) == ("lamps", "r1")
    assert seen.path == "/v1/chat/completions?api-version=7"
    assert seen.messages == BODY["messages"]


async def test_an_error_status_is_a_reply_like_any_other(make: Make) -> None:
    scripted = Reply(status=429, error={"message": "slow"}, headers={"Retry-After": "7"})
    with ScriptedServer(scripted) as server:
        url = f"{server.base_url}/chat/completions"
        reply = await make(server.base_url).send("POST", url, BODY, {})
    assert (reply.status, reply.headers["retry-after"]) == (429, "7")
    assert "slow" in reply.text
    assert len(server.requests) == 1


async def test_a_redirect_is_not_followed(make: Make) -> None:
    scripted = Reply(status=307, headers={"Location": "/v1/elsewhere"}, raw="")
    with ScriptedServer(scripted) as server:
        url = f"{server.base_url}/chat/completions"
        reply = await make(server.base_url).send("POST", url, BODY, {})
    assert reply.status == 307
    assert len(server.requests) == 1


async def test_a_refused_connection_is_told_from_a_dropped_one(make: Make) -> None:
    with ScriptedServer(Reply(drop="before")) as server:
        base = server.base_url
        with pytest.raises(ConnectionFailed) as dropped:
            await make(base).send("POST", f"{base}/chat/completions", BODY, {})
    assert dropped.value.problem == "dropped"
    with pytest.raises(ConnectionFailed) as refused:
        await make(base).send("POST", f"{base}/chat/completions", BODY, {})
    assert refused.value.problem == "refused"


async def test_a_body_that_breaks_off_is_a_dropped_connection(make: Make) -> None:
    with ScriptedServer(Reply(drop="mid_body")) as server:
        url = f"{server.base_url}/chat/completions"
        with pytest.raises(ConnectionFailed) as dropped:
            await make(server.base_url).send("POST", url, BODY, {})
    assert dropped.value.problem == "dropped"


async def test_a_stream_left_early_ends_at_the_server_too(make: Make) -> None:
    def endless() -> Reply:
        return Reply(pieces=iter(lambda: "more ", None))

    with ScriptedServer(lambda _: endless()) as server:
        url = f"{server.base_url}/chat/completions"
        transport = make(server.base_url)
        async with transport.stream(url, {**BODY, "stream": True}, {}) as response:
            assert response.status == 200
            async for line in response.lines:
                if "more" in line:
                    break
        await server.until(lambda: server.in_flight == 0)
        assert server.broken_off == 1


async def test_a_cancelled_call_leaves_its_connection_and_the_next_one_works(make: Make) -> None:
    with ScriptedServer("fine") as server:
        server.on(None, Reply(hang=True), times=1)
        transport = make(server.base_url)
        url = f"{server.base_url}/chat/completions"
        task = asyncio.create_task(transport.send("POST", url, BODY, {}))
        await server.until(lambda: server.in_flight == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.until(lambda: server.in_flight == 0)
        assert (await transport.send("POST", url, BODY, {})).status == 200
