"""The failure S-PARSER reports, with texts of our own: a passage on a namesake looks right."""

from __future__ import annotations

import json

import pytest

from hmars.errors import CallFailed
from hmars.llm.contract import ChatRequest
from hmars.llm.fake import Says
from tests.lead_world import ask_world, asked_of, by_role, calls, profile_of, text_of, turns
from tests.support import make_index

QUESTION = "Who was the husband of Countess Orsolya of Velden?"
IDENTITY = (
    "Countess Orsolya of Velden (1741–1790) was a daughter of Margrave Tibor and built mills."
)
RIGHT = "Count Emeric of Lask married Orsolya, a daughter of Margrave Tibor, in the year 1762."
NAMESAKE = "Princess Orsolya Romanetti sang at court. Her husband was Prince Niklas of Aarhus."
WRONG_QUOTE = "Her husband was Prince Niklas of Aarhus."
INDEX = make_index([[IDENTITY + "\n\n"], [NAMESAKE + "\n\n"], [RIGHT + "\n\n"], ["Mills grind.\n"]])


def read(request: ChatRequest) -> Says:
    """A reader that sees only its window and the query, as in the paper's failure."""
    prompt = text_of(request)
    query = asked_of(prompt)
    pages = prompt.partition("Facts found so far:")[0]
    found: list[dict[str, object]] = []
    if "who was" in query and IDENTITY in pages:
        found.append({"quote": IDENTITY, "answer": "daughter of Margrave Tibor"})
    if "husband" in query and WRONG_QUOTE in pages and "Tibor" not in query:
        found.append({"quote": WRONG_QUOTE, "answer": "Prince Niklas", "confidence": 1})
    if "Tibor" in query and RIGHT in pages:
        found.append({"quote": RIGHT, "answer": "Count Emeric of Lask", "confidence": 0.8})
    return {"findings": found}


def verify(request: ChatRequest) -> Says:
    """The check sees the page and the facts, and so whom the passage is about."""
    prompt = text_of(request)
    assert "daughter of Margrave Tibor" in prompt.partition("Facts found so far:")[2]
    if f"Passage: {WRONG_QUOTE}" in prompt:
        assert NAMESAKE in prompt
        return {"about": "Princess Orsolya Romanetti", "verdict": "mismatch", "why": "a singer"}
    return {"about": "Orsolya of Velden", "verdict": "match"}


LEAD = turns(
    calls("who was Countess Orsolya of Velden?"),
    calls("husband of Countess Orsolya of Velden"),
    "<answer>Prince Niklas of Aarhus</answer>",
    calls("who married Orsolya, daughter of Margrave Tibor?"),
    "<answer>Count Emeric of Lask</answer>",
)


@pytest.mark.parametrize("answer_from", ["evidence", "lead"])
async def test_a_passage_on_a_namesake_is_found_out_and_the_answer_is_thought_over(
    answer_from: str,
) -> None:
    def answer(request: ChatRequest) -> Says:
        assert NAMESAKE not in text_of(request), "what is refuted is not evidence"
        return {
            "answerable": True,
            "answer": "Count Emeric of Lask [2]",
            "citations": [{"evidence": 2, "quote": RIGHT}],
        }

    result, model = await ask_world(
        by_role(lead=LEAD, read=read, verify=verify, answer=answer),
        INDEX,
        question=QUESTION,
        profile=profile_of(lead={"answer_from": answer_from}),
    )
    rounds = result.answer.rounds
    assert [len(item.queries) for item in rounds] == [1, 1, 0, 1, 0]
    assert "did not stand" in rounds[2].note and not rounds[4].note
    assert [item.verdict for item in rounds[1].findings] == ["mismatch"]
    assert [item.verdict for item in rounds[3].findings] == ["match"]
    lead = [request for request in model.requests if request.role == "lead"]
    observation = lead[3].messages[-1].content
    assert "Princess Orsolya Romanetti" in observation and WRONG_QUOTE in observation
    assert result.answer.answer.startswith("Count Emeric of Lask [")
    assert RIGHT in [citation.quote for citation in result.answer.citations]
    assert WRONG_QUOTE not in [citation.quote for citation in result.answer.citations]
    assert any("about another than is meant" in note for note in result.answer.ledger.notes)


async def test_a_copy_of_a_refuted_passage_is_no_evidence_either() -> None:
    index = make_index([[IDENTITY], [NAMESAKE], [RIGHT], ["Mills."], [NAMESAKE + " Twice."]])

    def answer(request: ChatRequest) -> Says:
        assert NAMESAKE not in text_of(request)
        return {"answerable": True, "answer": "Emeric [2]", "citations": []}

    says = by_role(lead=LEAD, read=read, verify=verify, answer=answer)
    result, _ = await ask_world(says, index, question=QUESTION)
    assert [item.agent for item in result.answer.rounds[1].findings] == [2]
    assert result.answer.ledger.selected == 4


async def test_each_quotation_is_checked_once_however_often_the_lead_answers() -> None:
    _, model = await ask_world(
        by_role(lead=LEAD, read=read, verify=verify), INDEX, question=QUESTION
    )
    checks = [text_of(request) for request in model.requests if request.role == "read"]
    passages = [line for text in checks for line in text.splitlines() if "Passage: " in line]
    assert len(passages) == len(set(passages)) == 3


async def test_without_verifying_the_namesake_wins_as_in_the_paper() -> None:
    profile = profile_of(lead={"verify": False, "answer_from": "lead"})
    result, _ = await ask_world(
        by_role(lead=LEAD, read=read), INDEX, question=QUESTION, profile=profile
    )
    assert result.answer.answer.startswith("Prince Niklas of Aarhus")


async def test_a_check_that_fails_refutes_nothing_and_is_counted() -> None:
    def broken(request: ChatRequest) -> Says:
        return CallFailed("The endpoint gave no reply.", problem="timeout", role="read")

    result, _ = await ask_world(
        by_role(lead=LEAD, read=read, verify=broken), INDEX, question=QUESTION
    )
    assert {failure.stage for failure in result.answer.ledger.failures} == {"verify"}
    assert any("2 quotations could not be checked" in n for n in result.answer.ledger.notes)
    assert {item.verdict for r in result.answer.rounds for item in r.findings} == {"unchecked"}


async def test_an_answer_refuted_in_the_last_round_is_no_draft_and_the_ledger_says_so() -> None:
    drafts: list[str] = []

    def answer(request: ChatRequest) -> Says:
        drafts.append(text_of(request).rpartition("Draft: ")[2].splitlines()[0])
        return {"answerable": False, "answer": "It is not said.", "citations": []}

    result, _ = await ask_world(
        by_role(lead=LEAD, read=read, verify=verify, answer=answer),
        INDEX,
        question=QUESTION,
        profile=profile_of(lead={"max_rounds": 3}),
    )
    assert drafts == ["(none)"]
    assert any("it is no draft" in note for note in result.answer.ledger.notes)


async def test_the_check_reads_its_page_before_everything_that_changes() -> None:
    _, model = await ask_world(
        by_role(lead=LEAD, read=read, verify=verify), INDEX, question=QUESTION
    )
    for request in model.requests:
        if request.prompt.id == "verify_quote":
            user = request.messages[1].content
            assert user.startswith("<page 1 ")
            assert user.index("</page 1 ") < user.index("Facts found so far") < user.index("Query:")


async def test_the_trajectory_marks_what_may_be_trained_on_and_leaves_the_reward_open() -> None:
    result, _ = await ask_world(
        by_role(lead=LEAD, read=read, verify=verify), INDEX, question=QUESTION
    )
    line = json.loads(result.trajectory.line())
    assert line["format"] == "hmars-lead-trajectory" and line["reward"] is None
    assert line["conclusion"] == "Count Emeric of Lask" and line["ending"] == "answered"
    assert len(line["rounds"]) == 5
    assert [tool["function"]["name"] for tool in line["tools"]] == ["query_agents"]
    messages = line["messages"]
    assert [item["kind"] for item in messages[:4]] == ["prompt", "prompt", "lead", "observation"]
    assert all(item["loss"] == (item["role"] == "assistant") for item in messages)
    assert all(item["observation"] for item in messages if item["role"] == "tool")
    checked = next(item for item in messages if "were checked in their pages" in item["content"])
    assert checked["observation"] and not checked["loss"]
    for item in messages:
        if item["role"] == "tool":
            assert item["tool_call_id"]
