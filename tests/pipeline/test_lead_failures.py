"""The failure matrix of the lead: nothing that goes wrong looks like "nothing found"."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from hmars.errors import CallFailed, CallProblem, EndpointError
from hmars.llm.contract import ChatReply, ChatRequest
from hmars.llm.fake import Says
from hmars.query.pipeline import NOT_IN_DOCUMENT, NOTHING_INDEXED
from hmars.tokens import WordTokenizer
from tests.lead_world import (
    DEATH_ONE,
    DEATH_TWO,
    FILM_ONE,
    FILM_TWO,
    RIGHT,
    ask_world,
    asked_of,
    by_role,
    calls,
    document,
    pages_of,
    profile_of,
    reader_says,
    text_of,
    totals,
    turns,
)
from tests.support import make_index

INDEX = make_index(
    pages_of(document(96, {5: DEATH_TWO, 40: DEATH_ONE, 60: FILM_TWO, 90: FILM_ONE}))
)
"""Twelve pages in three regions; a window is a page."""
PROFILE = {"window_tokens": 200}


def failed(problem: CallProblem = "timeout", role: str = "read") -> CallFailed:
    return CallFailed(f"The endpoint gave no reply ({problem}).", problem=problem, role=role)


def told(request: ChatRequest) -> list[str]:
    return [message.content for message in request.messages if message.role == "tool"]


def lead_requests(requests: list[ChatRequest]) -> list[ChatRequest]:
    return [request for request in requests if request.role == "lead"]


async def test_a_reader_that_times_out_is_told_to_the_lead_and_fails_its_region_in_the_ledger() -> (
    None
):
    def read(request: ChatRequest) -> Says:
        text = text_of(request)
        return failed() if FILM_TWO in text and "Heron" in asked_of(text) else reader_says(text)

    result, model = await ask_world(by_role(read=read), INDEX, profile=profile_of(read=PROFILE))
    answer = result.answer
    first, second = told(lead_requests(model.requests)[1])
    assert "1 of 12 readers failed" in json.loads(first)["failed"]
    assert "failed" not in json.loads(second)
    assert answer.rounds[0].failed_readers == 1
    assert not answer.ledger.ok
    (failure,) = answer.ledger.failures
    assert (failure.stage, failure.region, failure.problem) == ("read", 2, "timeout")
    assert "1 of 48 readings failed" in " ".join(answer.ledger.notes)
    assert "1 of 48 readings failed" in answer.answer


async def test_a_region_whose_readers_fail_is_failed_and_one_whose_prompts_are_cut_truncated() -> (
    None
):
    def read(request: ChatRequest) -> Says:
        text = text_of(request)
        if "workshop number 0 " in text:
            return failed("server")
        if "workshop number 33 " in text:
            return failed("prompt_cut")
        return {"findings": []}

    script = turns(calls("who keeps bees?"), "<answer>Not in the document</answer>")
    result, _ = await ask_world(
        by_role(read=read, lead=script), INDEX, profile=profile_of(read=PROFILE)
    )
    assert totals(result.answer) == (0, 1, 1, 1, 0)
    assert result.answer.abstained
    assert "could not be read (1 failed, 1 truncated)" in result.answer.answer


async def test_asking_a_query_again_reads_only_what_failed_and_makes_it_good() -> None:
    read_by_query: list[str] = []

    def read(request: ChatRequest) -> Says:
        text = text_of(request)
        read_by_query.append(asked_of(text))
        again = len(read_by_query) > 12
        return failed() if FILM_ONE in text and not again else reader_says(text)

    query = "director of The Copper Heron"
    script = turns(calls(query), calls(query + "?"), "<answer>Tomas Vrel</answer>")
    result, model = await ask_world(
        by_role(read=read, lead=script), INDEX, profile=profile_of(read=PROFILE)
    )
    assert [item.readers for item in result.answer.rounds] == [12, 1, 0]
    assert result.answer.ledger.ok
    results = told(lead_requests(model.requests)[-1])
    assert "1 of 12 readers failed" in results[0]
    assert "Tomas Vrel" in results[1]


async def test_when_all_readers_fail_the_lead_hears_that_and_nobody_guesses() -> None:
    script = turns(calls("director of The Copper Heron"), "<answer>Tomas Vrel</answer>")
    result, model = await ask_world(by_role(read=lambda r: failed(), lead=script), INDEX)
    assert told(lead_requests(model.requests)[-1])[0].startswith("No agent could be asked")
    assert totals(result.answer) == (0, 0, 3, 0, 0)
    assert result.answer.abstained
    assert not any(request.role == "answer" for request in model.requests)


async def test_a_quote_that_is_not_in_its_window_is_dropped_and_counted() -> None:
    def read(request: ChatRequest) -> Says:
        said = reader_says(text_of(request))
        for finding in said["findings"]:
            if "Heron" in finding["quote"]:
                finding["quote"] = "The Copper Heron was made by somebody else entirely."
        return said

    script = turns(calls("director of The Copper Heron"), "<answer>Not in the document</answer>")
    result, model = await ask_world(by_role(read=read, lead=script), INDEX)
    assert result.answer.rounds[0].rejected_quotes == 1
    assert result.answer.ledger.rejected_quotes == 1
    assert result.answer.abstained
    assert "somebody else" not in told(lead_requests(model.requests)[-1])[0]


async def test_a_genuine_quote_that_holds_the_word_unknown_is_kept() -> None:
    sentence = "The maker of the Sund lamp is unknown, but it burned from 1702."
    index = make_index([[sentence + "\n"], ["Nothing of note.\n"]])

    def read(request: ChatRequest) -> Says:
        if sentence in text_of(request):
            return {"findings": [{"quote": sentence, "answer": "unknown"}]}
        return {"findings": [{"quote": "Unknown", "answer": "Unknown"}]}

    script = turns(calls("maker of the Sund lamp"), "<answer>It is unknown.</answer>")
    result, _ = await ask_world(by_role(read=read, lead=script), index)
    (finding,) = result.answer.rounds[0].findings
    assert finding.quote == sentence
    assert result.answer.rounds[0].rejected_quotes == 0
    assert totals(result.answer) == (1, 1, 0, 0, 0)


async def test_of_fifty_findings_the_least_confident_are_left_out_and_the_lead_is_told() -> None:
    texts = [
        f"Lamp number {n} stands on the quay of Sund and burns whale oil.\n" for n in range(50)
    ]
    index = make_index([texts[:25], texts[25:]])

    def read(request: ChatRequest) -> Says:
        text = text_of(request)
        number = next(n for n in range(50) if texts[n] in text)
        finding = {"quote": texts[number].strip(), "answer": "oil", "confidence": number / 50}
        return {"findings": [finding]}

    script = turns(calls("what do the lamps burn?"), "<answer>Whale oil</answer>")
    lead = {"max_observation_tokens": 256, "max_context_tokens": 20_000, "verify": False}
    profile = profile_of(read={"window_tokens": 13}, lead=lead)
    result, model = await ask_world(by_role(read=read, lead=script), index, profile=profile)
    text = told(lead_requests(model.requests)[-1])[0]
    shown = result.answer.rounds[0].findings
    assert WordTokenizer().count(text) <= 256
    assert result.answer.rounds[0].left_out == 50 - len(shown) > 0
    assert f"{50 - len(shown)} less certain findings" in json.loads(text)["left_out"]
    assert min(item.confidence for item in shown) == pytest.approx((50 - len(shown)) / 50)
    assert len(result.answer.evidence) == 50, "evidence is chosen by its own budget"


@pytest.mark.parametrize(
    ("turn", "error"),
    [
        (calls("x", name="web_search"), "no tool named 'web_search'"),
        (calls(7), "missing or is not a string"),
        (calls("  "), "is empty"),
    ],
)
async def test_a_call_that_cannot_be_made_gets_an_error_as_its_result_and_the_round_counts(
    turn: ChatReply, error: str
) -> None:
    script = turns(turn, "<answer>Not in the document</answer>")
    result, model = await ask_world(by_role(lead=script), INDEX)
    assert error in json.loads(told(lead_requests(model.requests)[-1])[0])["error"]
    assert [item.invalid for item in result.answer.rounds] == [True, False]
    assert totals(result.answer) == (0, 0, 0, 0, 3), "nothing was asked of any region"


async def test_a_turn_without_query_or_answer_gets_a_hint_and_the_round_counts() -> None:
    script = turns("I wonder.", calls("director of The Copper Heron"), "<answer>Vrel</answer>")
    result, model = await ask_world(by_role(lead=script), INDEX)
    assert [item.invalid for item in result.answer.rounds] == [True, False, False]
    hint = lead_requests(model.requests)[1].messages[-1]
    assert hint.role == "user" and "neither a query nor an answer" in hint.content


async def test_a_lead_that_never_answers_is_stopped_and_the_evidence_speaks_without_a_draft() -> (
    None
):
    def lead(request: ChatRequest) -> Says:
        done = sum(message.role == "assistant" for message in request.messages)
        return calls(f"director of The Copper Heron{' again' * done}")

    profile = profile_of(lead={"max_rounds": 4})
    result, model = await ask_world(by_role(lead=lead), INDEX, profile=profile)
    assert [len(item.queries) for item in result.answer.rounds] == [1, 1, 1, 0]
    assert result.answer.rounds[-1].invalid
    assert "No more queries" in lead_requests(model.requests)[-1].messages[-1].content
    assert "The lead gave no answer in 4 rounds." in result.answer.ledger.notes
    (asked,) = [request for request in model.requests if request.role == "answer"]
    assert "Draft: (none)" in text_of(asked)
    assert result.answer.citations


async def test_a_repeated_query_is_not_put_again_and_the_lead_is_told_so() -> None:
    query = "director of The Copper Heron"
    script = turns(calls(query), calls(query.upper() + " ?", query), "<answer>Vrel</answer>")
    result, model = await ask_world(by_role(lead=script), INDEX)
    assert [item.readers for item in result.answer.rounds] == [3, 0, 0]
    results = told(lead_requests(model.requests)[-1])
    assert results[1].startswith("You asked this in round 1 already; it found 1 findings")
    assert results[2].startswith("You asked this in round 1 already")


async def test_a_lead_whose_context_is_full_is_asked_once_to_answer_with_what_it_has() -> None:
    def lead(request: ChatRequest) -> Says:
        if "no room" in request.messages[-1].content:
            return "<answer>Tomas Vrel</answer>"
        done = sum(message.role == "assistant" for message in request.messages)
        thinking = "word " * 400
        return ChatReply(
            text="",
            reasoning=thinking,
            tool_calls=calls(f"director of The Copper Heron{' so' * done}").tool_calls,
        )

    limits = {
        "max_turn_tokens": 512,
        "max_observation_tokens": 256,
        "max_context_tokens": 2 * (2 * 512 + 256),
    }
    result, model = await ask_world(by_role(lead=lead), INDEX, profile=profile_of(lead=limits))
    asked = lead_requests(model.requests)
    assert 2 < len(asked) < 12
    assert sum("no room" in request.messages[-1].content for request in asked) == 1
    assert result.trajectory.data["conclusion"] == "Tomas Vrel"
    assert result.answer.ledger.ok


@pytest.mark.parametrize("problem", ["timeout", "server", "refusal"])
async def test_a_lead_whose_call_fails_ends_the_rounds_and_what_was_found_is_answered_from(
    problem: CallProblem,
) -> None:
    script = turns(calls("director of The Copper Heron"), failed(problem, "lead"))
    result, _ = await ask_world(by_role(lead=script), INDEX)
    answer = result.answer
    assert not answer.abstained and answer.citations
    assert [failure.stage for failure in answer.ledger.failures] == ["lead"]
    assert not answer.ledger.ok
    assert result.trajectory.data["ending"] == "failed"


@pytest.mark.parametrize("problem", ["invalid_reply", "length"])
async def test_a_turn_that_comes_back_empty_or_cut_is_an_invalid_round_not_the_end(
    problem: CallProblem,
) -> None:
    script = turns(
        failed(problem, "lead"), calls("director of The Copper Heron"), "<answer>V</answer>"
    )
    result, _ = await ask_world(by_role(lead=script), INDEX)
    assert [item.invalid for item in result.answer.rounds] == [True, False, False]
    assert result.answer.ledger.ok


async def test_an_endpoint_that_cannot_serve_anything_ends_the_question() -> None:
    refused = EndpointError("The key is refused.", problem="auth", role="read")
    with pytest.raises(EndpointError, match="refused"):
        await ask_world(by_role(read=lambda r: refused), INDEX)


async def test_nothing_indexed_asks_nobody() -> None:
    result, model = await ask_world(by_role())
    assert result.answer.answer == NOTHING_INDEXED
    assert not model.requests


async def test_without_findings_the_answer_is_not_in_the_document_whatever_the_lead_says() -> None:
    for answer_from in ("evidence", "lead"):
        script = turns(calls("colour of the Sund lamp"), "<answer>Green</answer>")
        profile = profile_of(lead={"answer_from": answer_from})
        result, model = await ask_world(by_role(lead=script), INDEX, profile=profile)
        assert result.answer.abstained
        assert result.answer.answer == NOT_IN_DOCUMENT
        assert not any(request.role == "answer" for request in model.requests)


async def test_all_queries_of_a_turn_are_before_all_windows_at_once() -> None:
    waiting = 0
    everybody = asyncio.Event()

    async def read(request: ChatRequest) -> Says:
        nonlocal waiting
        waiting += 1
        if waiting == 24:
            everybody.set()
        async with asyncio.timeout(5):
            await everybody.wait()
        return {"findings": []}

    script = turns(calls("one thing", "another thing"), "<answer>Not in the document</answer>")
    says = by_role(lead=script)

    def route(request: ChatRequest) -> object:
        return read(request) if request.role == "read" else says(request)

    result, model = await ask_world(route, INDEX, profile=profile_of(read=PROFILE))
    assert model.peak == 24
    assert result.answer.ledger.ok


async def test_a_readers_prompt_begins_the_same_for_every_query_round_and_question() -> None:
    _, model = await ask_world(by_role(), INDEX, profile=profile_of(read=PROFILE))
    script = turns(calls("who was a weaver?"), "<answer>Somebody</answer>")
    _, other = await ask_world(
        by_role(lead=script), INDEX, question="Who wove?", profile=profile_of(read=PROFILE)
    )
    by_window: dict[str, set[str]] = {}
    for request in (*model.requests, *other.requests):
        if request.prompt.id == "read_window":
            head, mark, _ = text_of(request).partition("Facts found so far:")
            assert mark
            by_window.setdefault(request.affinity, set()).add(head)
    assert len(by_window) == 12
    assert all(len(heads) == 1 for heads in by_window.values())


async def test_facts_found_so_far_and_hints_reach_the_readers_of_later_rounds() -> None:
    def broadcast(request: ChatRequest) -> Says:
        return {
            "interpretation": "films and their makers",
            "hints": [{"region": 2, "hint": "isle"}],
        }

    says = by_role(broadcast=broadcast)
    _, model = await ask_world(says, INDEX)
    prompts = [text_of(r) for r in model.requests if r.prompt.id == "read_window"]
    assert all("films and their makers" in prompt for prompt in prompts)
    assert sum("What to look for here: films and their makers isle" in p for p in prompts) == 4
    late = [prompt for prompt in prompts if "date of death" in asked_of(prompt)]
    assert late and all("directed by Tomas Vrel" in p.split("Facts found so far:")[1] for p in late)
    _, bare = await ask_world(
        says, INDEX, profile=profile_of(lead={"hints": False, "share_facts": False})
    )
    assert not any(request.role == "broadcast" for request in bare.requests)
    assert all("(none yet)" in text_of(r) for r in bare.requests if r.prompt.id == "read_window")


async def test_a_failed_broadcast_is_counted_and_its_regions_are_read_all_the_same() -> None:
    says = by_role(broadcast=lambda request: failed("timeout", "broadcast"))
    result, _ = await ask_world(says, INDEX)
    assert [failure.stage for failure in result.answer.ledger.failures] == ["broadcast"]
    assert result.answer.answer.startswith(RIGHT)


async def test_more_queries_than_allowed_in_one_turn_are_said_to_be_left_out() -> None:
    script = turns(calls("a1", "b2", "c3"), "<answer>Not in the document</answer>")
    profile = profile_of(lead={"max_queries": 2})
    result, model = await ask_world(by_role(lead=script), INDEX, profile=profile)
    assert result.answer.rounds[0].readers == 2 * 3
    assert "Only 2 queries" in told(lead_requests(model.requests)[-1])[2]


async def test_the_lead_is_told_the_document_and_the_heading_that_tell_findings_apart() -> None:
    first = make_index([[FILM_ONE + "\n"]], document="lives")
    page = replace(first.pages[0], context="Crime films")
    first = replace(first, regions=(replace(first.regions[0], pages=(page,)),))
    second = make_index([[FILM_TWO + "\n"]], document="letters")
    script = turns(
        calls("director of The Copper Heron", "director of Lanterns at Low Tide"),
        "<answer>Not in the document</answer>",
    )
    _, model = await ask_world(by_role(lead=script), first, second)
    heron, lanterns = map(json.loads, told(lead_requests(model.requests)[-1]))
    assert heron["agent_1"]["document"] == "Lives" and heron["agent_1"]["in"] == "Crime films"
    assert lanterns["agent_2"]["document"] == "Letters" and "in" not in lanterns["agent_2"]
