"""Tool calls in the forms servers send them: native, Qwen3.5 XML, Qwen3 JSON, bare JSON."""

from __future__ import annotations

import json

import pytest

from hmars.llm.contract import ChatReply, ToolCall
from hmars.query.lead.tooled import query_of
from hmars.query.lead.turns import read_turn


def queries(reply: ChatReply | str) -> list[str]:
    turn = read_turn(reply if isinstance(reply, ChatReply) else ChatReply(text=reply))
    return [query_of(call).query for call in turn.calls]


def xml(query: str, gap: str = "\n") -> str:
    return (
        f"<tool_call>{gap}<function=query_agents>{gap}<parameter=query>{gap}{query}{gap}"
        f"</parameter>{gap}</function>{gap}</tool_call>"
    )


def as_json(query: object) -> str:
    return json.dumps({"name": "query_agents", "arguments": {"query": query}})


FORMS = {
    "Qwen3.5 XML": xml("who wove it?"),
    "Qwen3.5 XML on one line": xml("who wove it?", gap=""),
    "Qwen3.5 XML with written line breaks": xml("who wove it?", gap="\\n"),
    "Qwen3.5 XML after prose": "I must ask.\n\n" + xml("who wove it?"),
    "XML without the outer mark": xml("who wove it?")[len("<tool_call>") : -len("</tool_call>")],
    "XML cut at the end": xml("who wove it?").removesuffix("</tool_call>"),
    "Qwen3 JSON": f"<tool_call>\n{as_json('who wove it?')}\n</tool_call>",
    "Qwen3 JSON, written line breaks": f"<tool_call>\\n{as_json('who wove it?')}\\n</tool_call>",
    "JSON arguments as text": "<tool_call>"
    + json.dumps({"name": "query_agents", "arguments": json.dumps({"query": "who wove it?"})})
    + "</tool_call>",
    "a list of JSON calls": f"<tool_call>[{as_json('who wove it?')}]</tool_call>",
    "bare JSON": as_json("who wove it?"),
    "fenced JSON": f"```json\n{as_json('who wove it?')}\n```",
    "fenced JSON after prose": f"I will ask:\n```json\n{as_json('who wove it?')}\n```\n",
    "JSON in OpenAI's wrapping": json.dumps(
        {"type": "function", "function": json.loads(as_json("who wove it?"))}
    ),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_a_call_written_as_text_is_understood(text: str) -> None:
    assert queries(text) == ["who wove it?"]


def test_several_blocks_of_one_turn_are_several_calls_in_order() -> None:
    assert queries(xml("first") + "\n" + xml("second")) == ["first", "second"]
    assert queries(f"<tool_call>[{as_json('a')}, {as_json('b')}]</tool_call>") == ["a", "b"]


def test_native_calls_win_and_keep_their_ids() -> None:
    native = ToolCall("chatcmpl-tool-7", "query_agents", '{"query": "native"}')
    turn = read_turn(ChatReply(text=xml("written"), tool_calls=(native,)))
    assert turn.calls == (native,)


def test_ids_that_would_repeat_over_the_turns_are_replaced() -> None:
    made_up = ToolCall("call_0", "query_agents", '{"query": "x"}')
    first = read_turn(ChatReply(text="", tool_calls=(made_up,)), first_id=1)
    second = read_turn(ChatReply(text="", tool_calls=(made_up,)), first_id=2)
    assert first.calls[0].id != second.calls[0].id


def test_prose_beside_a_written_call_is_kept_and_the_call_is_taken_out_of_it() -> None:
    turn = read_turn(ChatReply(text="Two films.\n" + xml("director of A")))
    assert turn.text == "Two films."


def test_the_answer_is_the_last_one_of_a_turn_without_calls() -> None:
    turn = read_turn(ChatReply(text="<answer>first</answer> no: <answer>\nsecond\n</answer>"))
    assert turn.answer == "second"
    assert read_turn(ChatReply(text=f"<answer>early</answer>{xml('wait')}")).answer is None
    assert read_turn(ChatReply(text="<answer>  </answer>")).answer is None
    assert read_turn(ChatReply(text="The answer is 4.")).answer is None


def test_json_that_is_no_call_is_no_call() -> None:
    assert queries('{"title": "query_agents"}') == []
    assert queries('```json\n{"name": "Ada"}\n```') == []


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (ToolCall("1", "look_up", '{"query": "x"}'), "no tool named"),
        (ToolCall("1", "query_agents", "[1]"), "JSON object"),
        (ToolCall("1", "query_agents", "{broken"), "JSON object"),
        (ToolCall("1", "query_agents", '{"question": "x"}'), "missing"),
        (ToolCall("1", "query_agents", '{"query": ["x"]}'), "not a string"),
        (ToolCall("1", "query_agents", '{"query": " "}'), "empty"),
    ],
)
def test_a_call_that_cannot_be_made_says_why(call: ToolCall, error: str) -> None:
    assert error in query_of(call).error and not query_of(call).query
