"""Replies of a declared shape: what is accepted, what is asked again, how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hmars.errors import CallFailed, EndpointError
from hmars.llm.contract import ChatReply, ChatRequest
from hmars.llm.fake import FakeClock
from hmars.llm.stack import ModelStack
from hmars.model import Usage
from tests.llm_support import LAMP, Lamp, ask, profile_for
from tests.scripted_server import Reply, ScriptedServer, Seen


async def run(
    server: ScriptedServer,
    request: ChatRequest | None = None,
    *,
    role: dict[str, Any] | None = None,
    warn: Callable[[str], None] | None = None,
    **endpoint: Any,
) -> ChatReply:
    profile = profile_for(server, role, **endpoint)
    async with ModelStack(profile, warn=warn, clock=FakeClock()) as stack:
        return await stack.model("card").complete(request or ask())


def in_turn(*says: str | Reply) -> Callable[[Seen], str | Reply]:
    return lambda seen: says[min(seen.number, len(says)) - 1]


async def test_a_good_reply_takes_one_call_and_no_help() -> None:
    with ScriptedServer(LAMP) as server:
        reply = await run(server)
    assert reply.value == Lamp(name="Brindle", watts=[4, 9])
    assert (reply.usage.calls, reply.usage.paths) == (1, {})
    schema = server.requests[0].schema
    assert schema is not None
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    "text",
    [f"```json\n{LAMP}\n```\nDone.", f"~~~\n{LAMP}\n~~~", f"```json\n{LAMP}", f"So: {LAMP} Ok."],
)
async def test_fences_and_prose_are_accepted_at_the_first_attempt(text: str) -> None:
    with ScriptedServer(text) as server:
        reply = await run(server)
    assert reply.value == Lamp(name="Brindle", watts=[4, 9])
    assert len(server.requests) == 1
    assert sum(reply.usage.paths.values()) == 1


async def test_a_wrong_reply_is_asked_for_once_more_with_the_reason() -> None:
    wrong = '{"name": "Brindle", "watts": "many"}'
    with ScriptedServer(in_turn(wrong, LAMP)) as server:
        reply = await run(server)
    first, second = server.requests
    assert reply.value == Lamp(name="Brindle", watts=[4, 9])
    assert reply.usage.reasks == 1
    assert reply.usage.calls == 2
    assert reply.usage.paths == {"wrong_shape": 1}
    assert "watts: Input should be a valid list" in second.text
    assert json.dumps(wrong) in second.text
    assert second.text.startswith(first.text), "the prefix stays the same for the cache"
    assert [message["role"] for message in second.messages] == ["user"]


async def test_two_wrong_replies_fail_with_what_both_cost() -> None:
    with (
        ScriptedServer('{"name": "broken') as server,
        pytest.raises(CallFailed) as failed,
    ):
        await run(server)
    assert failed.value.problem == "invalid_reply"
    assert failed.value.attempts == len(server.requests) == 2
    usage = failed.value.usage
    assert usage is not None
    assert (usage.calls, usage.reasks, usage.paths) == (2, 1, {"no_json": 2})
    assert usage.prompt_tokens > 0


async def test_a_cut_reply_is_asked_for_with_twice_the_room_and_a_shorter_demand() -> None:
    def speak(seen: Seen) -> Reply:
        cut = seen.max_tokens < 2_000
        return Reply(LAMP[:20] if cut else LAMP, finish_reason="length" if cut else "stop")

    with ScriptedServer(speak) as server:
        reply = await run(server, role={"max_tokens": 1_200})
    assert [seen.max_tokens for seen in server.requests] == [1_200, 2_400]
    assert "output limit of 1200 tokens" in server.requests[1].text
    assert "much shorter" in server.requests[1].text
    assert reply.usage.paths == {"length": 1, "length_reask": 1}


async def test_a_reply_cut_twice_fails_as_cut_and_not_as_invalid() -> None:
    with (
        ScriptedServer(Reply(LAMP, finish_reason="length")) as server,
        pytest.raises(CallFailed, match="output limit") as failed,
    ):
        await run(server, role={"max_tokens": 300})
    assert failed.value.problem == "length"
    bodies = [seen.body for seen in server.requests]
    assert len(bodies) == 2
    assert bodies[0] != bodies[1]


async def test_the_larger_limit_stays_within_the_context() -> None:
    with (
        ScriptedServer(Reply("{", finish_reason="length"), context_limit=600) as server,
        pytest.raises(CallFailed) as failed,
    ):
        await run(server, role={"max_tokens": 400, "context_tokens": 600})
    assert failed.value.problem == "length"
    assert server.requests[1].max_tokens < 600
    assert server.requests[1].text != server.requests[0].text


async def test_a_second_request_that_no_longer_fits_is_a_cut_reply_not_the_end_of_the_run() -> None:
    with (
        ScriptedServer(Reply("{", finish_reason="length"), context_limit=600) as server,
        pytest.raises(CallFailed) as failed,
    ):
        await run(server, role={"max_tokens": 400})
    assert failed.value.problem == "length"


@pytest.mark.parametrize(
    ("piece", "times"), [(" ", 10_000), ('{"page": 1, "why": "an item"}, ', 10_000)]
)
async def test_a_loop_is_cut_while_it_streams_and_asked_again(piece: str, times: int) -> None:
    def speak(seen: Seen) -> Reply:
        if seen.number > 1:
            return Reply(LAMP)
        return Reply(pieces=['{"name": "Brindle", "watts": [', *[piece] * times])

    with ScriptedServer(speak) as server:
        reply = await run(server)
        await server.until(lambda: server.in_flight == 0)
    assert server.requests[0].stream
    assert server.broken_off == 1
    assert reply.value == Lamp(name="Brindle", watts=[4, 9])
    assert reply.usage.paths == {"loop_cut": 1, "usage_estimated": 1}
    assert piece * 3 not in server.requests[1].text, "a loop is not fed back"


async def test_a_complete_reply_that_only_trails_off_in_white_space_is_taken() -> None:
    def speak(_: Seen) -> Reply:
        return Reply(pieces=[LAMP, *["\n"] * 10_000])

    with ScriptedServer(speak) as server:
        reply = await run(server)
    assert reply.value == Lamp(name="Brindle", watts=[4, 9])
    assert len(server.requests) == 1
    assert reply.usage.paths["loop_cut"] == 1


async def test_a_loop_in_a_reply_that_was_not_streamed_does_not_get_twice_the_room() -> None:
    loop = Reply('{"watts": [' + "4, " * 800, finish_reason="length")
    with ScriptedServer(in_turn(loop, LAMP)) as server:
        reply = await run(server, role={"max_tokens": 256})
    assert [seen.stream for seen in server.requests] == [False, False]
    assert [seen.max_tokens for seen in server.requests] == [256, 256]
    assert reply.usage.paths == {"loop_cut": 1}


async def test_a_schema_sent_back_is_asked_again_with_a_hint() -> None:
    echo = json.dumps(Lamp.model_json_schema())
    with ScriptedServer(in_turn(echo, LAMP)) as server:
        reply = await run(server)
    assert reply.usage.paths == {"schema_echo": 1}
    assert "Do not repeat the schema" in server.requests[1].text


async def test_an_endpoint_without_schemas_is_asked_in_the_next_way_from_then_on() -> None:
    warnings: list[str] = []
    with ScriptedServer(LAMP, formats=["json_object"]) as server:
        async with ModelStack(profile_for(server), warn=warnings.append) as stack:
            first, second = [await stack.model("card").complete(ask()) for _ in range(2)]
    assert [seen.format for seen in server.requests] == [
        "json_schema",
        "json_object",
        "json_object",
    ]
    assert first.usage.paths == {"mode_fallback": 1}
    assert second.usage == Usage(
        calls=1,
        prompt_tokens=second.usage.prompt_tokens,
        completion_tokens=second.usage.completion_tokens,
    )
    assert len(warnings) == 1
    assert '"watts"' in server.requests[1].text, "the schema stands in the prompt"


async def test_an_endpoint_without_any_json_mode_is_asked_in_words() -> None:
    with ScriptedServer(formats=[]) as server:
        reply = await run(server)
    assert isinstance(reply.value, Lamp)
    assert [seen.format for seen in server.requests] == ["json_schema", "json_object", "text"]


async def test_a_way_set_in_the_profile_is_not_left_silently() -> None:
    with (
        ScriptedServer(formats=["json_object"]) as server,
        pytest.raises(EndpointError, match=r"endpoints\.desk\.structured"),
    ):
        await run(server, structured="json_schema")
    assert len(server.requests) == 1


async def test_an_endpoint_that_does_not_look_at_schemas_is_noticed() -> None:
    def speak(seen: Seen) -> str:
        return LAMP if "JSON schema" in seen.text else "A fine lamp of nine watts."

    with ScriptedServer(speak) as server:
        async with ModelStack(profile_for(server)) as stack:
            replies = [await stack.model("card").complete(ask()) for _ in range(4)]
    assert [reply.usage.calls for reply in replies] == [2, 2, 1, 1]
    assert [seen.format for seen in server.requests[-2:]] == ["json_object"] * 2


async def test_a_text_reply_that_is_empty_is_asked_for_again() -> None:
    with ScriptedServer(in_turn("", "Amber.")) as server:
        reply = await run(server, ask(output=None))
    assert reply.text == "Amber."
    assert reply.usage.paths == {"empty": 1}


async def test_an_empty_success_does_not_exist() -> None:
    with (
        ScriptedServer("") as server,
        pytest.raises(CallFailed) as failed,
    ):
        await run(server, ask(output=None))
    assert failed.value.problem == "invalid_reply"


async def test_only_the_first_attempt_is_heard() -> None:
    heard: list[str] = []
    with ScriptedServer(in_turn("not json", LAMP)) as server:
        await run(server, ask(on_text=heard.append))
    assert "".join(heard) == "not json"


async def test_retries_and_reasks_are_counted_apart() -> None:
    says = in_turn(Reply(status=500), "not json", Reply(status=503), LAMP)
    with ScriptedServer(says) as server:
        reply = await run(server)
    assert (reply.usage.calls, reply.usage.retries, reply.usage.reasks) == (4, 2, 1)


async def test_a_failure_in_the_second_attempt_carries_the_cost_of_the_first() -> None:
    says = in_turn("not json", Reply(status=401))
    with (
        ScriptedServer(says) as server,
        pytest.raises(EndpointError) as failed,
    ):
        await run(server)
    assert failed.value.usage is not None
    assert failed.value.usage.calls == 2
    assert failed.value.usage.prompt_tokens > 0
