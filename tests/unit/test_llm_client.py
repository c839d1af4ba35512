"""One call over a real socket: what is sent, what is made of what comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hmars.errors import CallFailed, EndpointError
from hmars.llm.contract import ChatReply, Message, ToolCall
from hmars.llm.failures import Transient
from tests.llm_support import ask, chat_for
from tests.scripted_server import Reply, ScriptedServer, Seen

QUIET = ask(output=None)


def unheard(piece: str) -> None:
    """Asks for a stream."""


async def call(
    server: ScriptedServer,
    request: Any = QUIET,
    warn: Callable[[str], None] = lambda _: None,
    **endpoint: Any,
) -> ChatReply:
    desk, chat = chat_for(server, warn, **endpoint)
    try:
        return await chat.complete(request)
    finally:
        await desk.close()


async def test_the_affinity_key_of_a_region_is_a_header_of_its_calls() -> None:
    with ScriptedServer() as server:
        await call(server, ask(output=None, affinity="a1b2"))
        await call(server, ask(output=None, affinity="two\nlines"), affinity_header="X-Route")
    assert server.requests[0].headers["X-Session-ID"] == "a1b2"
    assert "\n" not in server.requests[1].headers["X-Route"]


async def test_no_key_is_sent_where_none_is_configured_for_a_local_server() -> None:
    with ScriptedServer() as server:
        await call(server)
    assert "Authorization" not in server.requests[0].headers


async def test_thinking_is_kept_apart_from_the_text() -> None:
    with ScriptedServer() as server:
        server.on("field", Reply("Amber.", reasoning="The lamp glows."))
        server.on("block", Reply("<think>\nThe lamp glows.\n</think>\n\nAmber."))
        server.on("closing", Reply("The lamp glows.</think>Amber."))
        for text in ("field", "block", "closing"):
            reply = await call(server, ask(text, output=None))
            assert (reply.text, reply.reasoning) == ("Amber.", "The lamp glows.")


async def test_thinking_that_never_ends_leaves_no_text() -> None:
    with ScriptedServer(Reply("<think>Let me see", finish_reason="length")) as server:
        reply = await call(server)
    assert (reply.text, reply.finish_reason) == ("", "length")


async def test_a_content_of_null_is_an_empty_text() -> None:
    with ScriptedServer(Reply(None, reasoning="Hm.")) as server:
        reply = await call(server)
    assert (reply.text, reply.reasoning) == ("", "Hm.")


async def test_thinking_marks_inside_a_json_reply_are_left_alone() -> None:
    with ScriptedServer('{"a": "say </think> here"}') as server:
        assert (await call(server)).text == '{"a": "say </think> here"}'


async def test_a_streamed_reply_is_the_same_as_a_whole_one_and_is_heard_in_pieces() -> None:
    text = "The lamp burns with a low amber light, seldom more."
    heard: list[str] = []
    with ScriptedServer(Reply(text, reasoning="Think of lamps.")) as server:
        whole = await call(server)
        streamed = await call(server, ask(output=None, on_text=heard.append))
    assert streamed == whole
    assert len(heard) > 1
    assert "".join(heard) == text


async def test_thinking_in_the_text_of_a_stream_is_not_heard() -> None:
    heard: list[str] = []
    with ScriptedServer("<think>Think of lamps, long.</think> Amber light.") as server:
        reply = await call(server, ask(output=None, on_text=heard.append))
    assert "".join(heard) == reply.text == "Amber light."


async def test_a_server_that_does_not_stream_is_understood_all_the_same() -> None:
    heard: list[str] = []
    raw = '{"choices": [{"message": {"content": "Amber."}, "finish_reason": "stop"}]}'
    with ScriptedServer(Reply(raw=raw)) as server:
        reply = await call(server, ask(output=None, on_text=heard.append))
    assert heard == [reply.text] == ["Amber."]


async def test_cached_prompt_tokens_are_recorded() -> None:
    usage = {
        "prompt_tokens": 900,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 850},
    }
    with ScriptedServer(Reply(usage=usage)) as server:
        reply = await call(server)
    assert (reply.usage.prompt_tokens, reply.usage.cached_tokens) == (900, 850)


async def test_a_server_that_reports_no_usage_is_warned_of_once_and_estimated() -> None:
    warnings: list[str] = []
    with ScriptedServer(Reply("Amber light.", usage="none")) as server:
        desk, chat = chat_for(server, warnings.append)
        replies = [await chat.complete(ask("x" * 400, output=None)) for _ in range(3)]
        await desk.close()
    assert len(warnings) == 1
    assert replies[0].usage.prompt_tokens == 100
    assert replies[0].usage.paths == {"usage_estimated": 1}


@pytest.mark.parametrize(("exact", "counted"), [(True, 150), (False, 250)])
async def test_a_silently_cut_prompt_fails_the_call_and_names_the_remedy(
    exact: bool, counted: int
) -> None:
    request = ask("x" * 600, output=None, prompt_tokens=counted, prompt_tokens_exact=exact)
    with (
        ScriptedServer(cap_prompt_tokens=100) as server,
        pytest.raises(CallFailed, match=r"num_ctx.*OLLAMA_CONTEXT_LENGTH") as failed,
    ):
        await call(server, request)
    assert failed.value.problem == "prompt_cut"
    assert failed.value.usage is not None
    assert failed.value.usage.prompt_tokens == 100


async def test_an_approximate_count_leaves_room_before_a_prompt_counts_as_cut() -> None:
    request = ask("x" * 600, output=None, prompt_tokens=150)
    with ScriptedServer(cap_prompt_tokens=100) as server:
        assert (await call(server, request)).text == "ok"


async def test_log_probabilities_of_the_first_token_come_back_best_first() -> None:
    with ScriptedServer(Reply("yes", logprobs=[("yes", -0.1), ("no", -2.5)])) as server:
        reply = await call(server, ask(output=None, top_logprobs=2, max_tokens=1))
    assert reply.extra["top_logprobs"] == [("yes", -0.1), ("no", -2.5)]
    assert server.requests[0].body["top_logprobs"] == 2
    assert server.requests[0].body["max_tokens"] == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_tool_calls_go_there_and_back(stream: bool) -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    history = (
        Message("user", "Look."),
        Message("assistant", "", tool_calls=(ToolCall("c0", "look", "{}"),), reasoning="Hm."),
        Message("tool", "nothing", tool_call_id="c0"),
    )
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    base = ask(output=None, tools=(tool,), on_text=unheard if stream else None)
    with ScriptedServer(Reply("", tool_calls=calls, finish_reason="tool_calls")) as server:
        reply = await call(server, replace(base, messages=history))
    assert reply.tool_calls == (ToolCall("c1", "look", "{}"),)
    sent = server.requests[0].messages
    assert sent[1]["reasoning_content"] == "Hm."
    assert sent[1]["tool_calls"][0]["function"]["name"] == "look"
    assert sent[2]["tool_call_id"] == "c0"


@pytest.mark.parametrize("parameter", ["max_tokens", "temperature"])
async def test_a_refused_default_parameter_is_given_up_for_good(parameter: str) -> None:
    def refuse(seen: Seen) -> Reply | None:
        if parameter not in seen.body:
            return None
        message = f"Unsupported parameter: '{parameter}' is not supported with this model."
        return Reply(status=400, error={"message": message, "code": "unsupported_parameter"})

    with ScriptedServer(refuse) as server:
        desk, chat = chat_for(server)
        first, second = [await chat.complete(QUIET) for _ in range(2)]
        await desk.close()
    assert first.usage.paths == {f"{parameter}_refused": 1}
    assert second.usage.paths == {}
    assert len(server.requests) == 3


async def test_a_reply_that_never_comes_times_out() -> None:
    with ScriptedServer(Reply(hang=True)) as server:
        with pytest.raises(Transient) as failed:
            await call(server, timeout_s=0.05)
        await server.until(lambda: server.in_flight == 0)
    assert failed.value.problem == "timeout"
    assert "timeout_s" in str(failed.value)


async def test_a_trickle_of_bytes_does_not_keep_a_call_alive() -> None:
    with ScriptedServer(Reply(trickle=True)) as server:
        with pytest.raises(Transient) as failed:
            await call(server, timeout_s=0.15)
        await server.until(lambda: server.in_flight == 0)
    assert failed.value.problem == "timeout"


BROKEN = ["", "<html>oops</html>", "[]", "{}", '{"choices": []}', '{"choices": [null]}', "[" * 9999]


@pytest.mark.parametrize("raw", BROKEN)
async def test_a_malformed_body_is_a_failure_of_the_server(raw: str) -> None:
    with ScriptedServer(Reply(raw=raw)) as server, pytest.raises(Transient) as failed:
        await call(server)
    assert failed.value.problem == "server"


async def test_a_stream_that_ends_in_the_middle_is_no_reply() -> None:
    raw = 'data: {"choices": [{"delta": {"content": "Am"}}]}\n\n'
    headers = {"Content-Type": "text/event-stream"}
    with (
        ScriptedServer(Reply(raw=raw, headers=headers)) as server,
        pytest.raises(Transient, match="ends in the middle"),
    ):
        await call(server, ask(output=None, on_text=unheard))


async def test_an_error_under_status_200_is_an_error() -> None:
    raw = '{"error": {"message": "model overloaded", "code": 503}}'
    with (
        ScriptedServer(Reply(raw=raw)) as server,
        pytest.raises(Transient, match=r"503.*model overloaded"),
    ):
        await call(server)


async def test_a_refusal_is_not_an_answer() -> None:
    with ScriptedServer() as server:
        server.on("filtered", Reply("", finish_reason="content_filter"))
        server.on("declined", Reply(None, refusal="I would rather not."))
        for text in ("filtered", "declined"):
            with pytest.raises(CallFailed) as failed:
                await call(server, ask(text, output=None))
            assert failed.value.problem == "refusal"


async def test_a_server_that_is_not_there_stops_the_run() -> None:
    with ScriptedServer() as server:
        pass
    with pytest.raises(EndpointError, match=r"endpoints\.desk\.base_url") as failed:
        await call(server)
    assert failed.value.problem == "unreachable"


async def test_a_server_that_went_away_after_answering_may_come_back() -> None:
    with ScriptedServer() as server:
        desk, chat = chat_for(server)
        await chat.complete(QUIET)
    with pytest.raises(Transient) as failed:
        await chat.complete(QUIET)
    # The first call may find its kept connection closed; the one after is refused.
    while failed.value.lasting.__class__ is CallFailed:
        with pytest.raises(Transient) as failed:
            await chat.complete(QUIET)
    await desk.close()
    assert isinstance(failed.value.lasting, EndpointError)
    assert failed.value.lasting.problem == "unreachable"
