"""The reader that searches its region by regular expression and opens line ranges."""

from __future__ import annotations

import json

import pytest

from hmars.errors import CallFailed
from hmars.llm.contract import ChatReply, ChatRequest, ToolCall
from hmars.llm.fake import FakeModel, Says, ScriptedModel
from hmars.prompts import PromptLibrary
from hmars.query.lead import grep
from hmars.query.lead.agents import Reading, Window
from hmars.query.lead.grep import GrepReader, Lines
from hmars.query.lead.windows import windows_of
from hmars.tokens import WordTokenizer
from tests.lead_world import ask_world, by_role, calls, profile_of, turns
from tests.support import make_index, scope_of

LINES = [f"def step_{number}(): return {number}" for number in range(1, 201)]
TEXT = "\n".join(LINES) + "\n"
REPORT = {"quote": LINES[86], "answer": "87", "confidence": 0.9}


def window() -> Window:
    return windows_of(scope_of(make_index([[TEXT]])), None)[0]


def reader(model: object, *, steps: int = 6, with_tools: bool = True) -> GrepReader:
    name = "read_search_tools" if with_tools else "read_search_schema"
    return GrepReader(
        model,  # type: ignore[arg-type]
        PromptLibrary().get(name),
        WordTokenizer(),
        steps,
        with_tools=with_tools,
    )


def call(name: str, **arguments: object) -> ChatReply:
    tool = ToolCall(f"id-{name}", name, json.dumps(arguments))
    return ChatReply(text="", tool_calls=(tool,))


async def test_it_searches_opens_and_reports_with_tools() -> None:
    model = ScriptedModel(
        [
            call("search", pattern=r"step_8[67]\("),
            call("open", first=86, last=88),
            json.dumps({"findings": [REPORT]}),
        ]
    )
    claims = await reader(model).read(Reading("what does step_87 return?"), window())
    model.check_finished()
    assert [claim.quote for claim in claims] == [LINES[86]]
    results = [item.content for item in model.requests[-1].messages if item.role == "tool"]
    assert results[0].splitlines() == [f"86: {LINES[85]}", f"87: {LINES[86]}"]
    assert len(results[1].splitlines()) == 3
    assert TEXT not in model.requests[-1].messages[1].content


async def test_it_searches_opens_and_reports_under_a_schema() -> None:
    model = ScriptedModel(
        [
            {"action": "search", "pattern": "STEP_87"},
            {"action": "open", "first": 87, "last": 87},
            {"action": "report", "findings": [REPORT]},
        ]
    )
    claims = await reader(model, with_tools=False).read(Reading("step_87?"), window())
    assert [claim.answer for claim in claims] == ["87"]
    assert f"87: {LINES[86]}" in model.requests[1].messages[-1].content


async def test_it_is_told_when_the_last_look_is_over_and_a_reader_without_a_report_has_failed() -> (
    None
):
    def says(request: ChatRequest) -> Says:
        return call("search", pattern="step_1$")

    model = FakeModel(says)
    with pytest.raises(CallFailed, match=r"3 turns without a report: raise read\.grep_steps"):
        await reader(model, steps=3).read(Reading("?"), window())
    assert "Report now" in model.requests[-1].messages[-1].content


async def test_a_reply_that_is_neither_call_nor_report_is_asked_again() -> None:
    model = ScriptedModel(["I shall think.", '{"findings": []}'])
    assert await reader(model).read(Reading("?"), window()) == []
    assert "report as JSON" in model.requests[1].messages[-1].content


def test_searches_say_what_is_wrong_with_them_and_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = Lines.of(TEXT)
    assert "not a regular expression" in lines.search("step_(")
    assert lines.search("nothing like it") == "No line matches."
    assert "180 more lines match" in lines.search("return")
    assert "(cut after 60 lines)" in lines.open(1, 200)
    assert "lines 1 to 200" in lines.open(300, 310)
    assert lines.open(-5, 1) == f"1: {LINES[0]}"
    monkeypatch.setattr(grep, "SEARCH_SECONDS", 0.01)
    slow = Lines.of("a" * 5_000 + "!\n")
    assert "takes too long" in slow.search(r"(a|a)*?(a|a)*$(?<!x)\Z(?=b)|(?:a+)+b(?<=c)(a*)*\d")


def test_lines_shown_are_cut_and_defused() -> None:
    shown = Lines.of("<|im_start|> " + "x" * 5_000).search("x")
    assert len(shown) < 700 and "<|im_start|>" not in shown


async def test_the_lead_drives_searching_readers_over_whole_regions() -> None:
    index = make_index([[TEXT], ["Nothing to see.\n", "At all.\n"]])

    def read(request: ChatRequest) -> Says:
        results = [item.content for item in request.messages if item.role == "tool"]
        if not results:
            return call("search", pattern="step_87")
        found = [REPORT] if "step_87" in results[0] else []
        return json.dumps({"findings": found})

    script = turns(calls("step_87"), "<answer>87</answer>")
    profile = profile_of(read={"mode": "grep"})
    result, model = await ask_world(by_role(lead=script, read=read), index, profile=profile)
    assert result.answer.rounds[0].readers == 2
    assert [item.quote for item in result.answer.rounds[0].findings] == [LINES[86]]
    reads = [request for request in model.requests if request.prompt.id == "read_search_tools"]
    assert len(reads) == 4
    assert {tool["function"]["name"] for tool in reads[0].tools} == {"search", "open"}
