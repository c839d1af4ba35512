"""Budgets of the lead: what they do not reach is skipped and said; what was found is answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hmars import Budget, ConfigError, Memory
from hmars.errors import CallFailed
from hmars.llm.budget import Spending
from hmars.llm.contract import ChatRequest
from hmars.llm.fake import Says
from hmars.model import Answer
from hmars.query.lead import lead_roles
from hmars.query.lead.driver import SPENT
from tests.lead_server import serve
from tests.lead_world import (
    DEATH_ONE,
    DEATH_TWO,
    FILM_ONE,
    FILM_TWO,
    QUESTION,
    RIGHT,
    ask_world,
    by_role,
    document,
    pages_of,
    profile_of,
    reader_says,
    text_of,
    totals,
)
from tests.scripted_server import ScriptedServer, Seen
from tests.support import make_index

FACTS = {0: FILM_ONE, 1: FILM_TWO, 60: DEATH_ONE, 90: DEATH_TWO}
TEXT = document(96, FACTS)
SMALL: dict[str, Any] = {
    "partition": {"page_tokens": 400, "region_tokens": 400},
    "read": {"window_tokens": 400},
    "lead": {"hints": False},
}
INDEX = make_index(pages_of(document(96, FACTS)))
NOTHING = "The budget of this run was spent before anything was read."


@pytest.fixture
def server() -> Generator[ScriptedServer]:
    with ScriptedServer(serve) as running:
        yield running


@asynccontextmanager
async def indexed(
    folder: Path, server: ScriptedServer, **sections: Any
) -> AsyncGenerator[tuple[Memory, int]]:
    """A memory of the world's text, and how many regions (and so windows) it has."""
    profile = profile_of(server.base_url, **{**SMALL, **sections})
    async with Memory.open(folder / "memory.sqlite", profile=profile) as memory:
        report = await memory.add(TEXT, title="Lives")
        server.requests.clear()
        yield memory, report.regions


def readings(server: ScriptedServer) -> list[Seen]:
    return [
        seen
        for seen in server.requests
        if str(seen.messages[0]["content"]).startswith("You read one part")
    ]


def adds_up(answer: Answer) -> None:
    assert sum(totals(answer)) == answer.ledger.regions
    assert answer.ledger.ok, "a budget is what was asked for, and no failure"


@pytest.mark.parametrize(
    "budget", [Budget(max_calls=0), Budget(max_calls=1), Budget(max_seconds=0)]
)
async def test_a_budget_that_reaches_for_nothing_asks_nobody_and_says_so_in_a_sentence(
    tmp_path: Path, server: ScriptedServer, budget: Budget
) -> None:
    async with indexed(tmp_path, server) as (memory, regions):
        answer = await memory.ask(QUESTION, driver="lead", budget=budget)
    assert server.requests == []
    assert answer.abstained and answer.rounds == ()
    assert answer.answer.startswith(NOTHING)
    assert totals(answer) == (0, 0, 0, 0, regions)
    assert any("was spent before everything was asked" in note for note in answer.ledger.notes)
    adds_up(answer)


async def test_readings_that_the_budget_does_not_reach_skip_their_regions(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with indexed(tmp_path, server) as (memory, regions):
        answer = await memory.ask(QUESTION, driver="lead", budget=Budget(max_calls=7))
    (first,) = answer.rounds
    assert len(server.requests) == 7
    assert len(readings(server)) == 5, "one call for the lead's turn, one kept for the answer"
    assert (first.readers, first.skipped_readers, first.failed_readers) == (
        2 * regions,
        2 * regions - 5,
        0,
    )
    assert answer.ledger.selected == 1
    assert answer.ledger.skipped >= regions - 3
    assert answer.citations, "the answer came from what was found"
    left_out = f"{2 * regions - 5} of {2 * regions} readings were left out for the budget"
    assert f"Note: {left_out}; this answer may be incomplete." in answer.answer
    notes = " ".join(answer.ledger.notes)
    assert "The budget was spent after 1 round, and the lead gave no answer." in notes
    assert left_out in notes
    assert notes.count("--max-calls 7") == 1
    adds_up(answer)


async def test_a_budget_that_ends_before_the_leads_next_turn_answers_from_what_was_found(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with indexed(tmp_path, server) as (memory, regions):
        limit = 1 + 2 * regions + 1
        trajectory = tmp_path / "t.jsonl"
        answer = await memory.ask(
            QUESTION, driver="lead", budget=Budget(max_calls=limit), trajectory=trajectory
        )
    assert len(server.requests) == limit
    assert [len(item.findings) for item in answer.rounds] == [2]
    assert answer.ledger.skipped == 0 and answer.usage["answer"].calls == 1
    assert "the budget was spent before the lead came to an answer" in answer.answer
    assert json.loads(trajectory.read_text(encoding="utf-8"))["ending"] == "budget"
    adds_up(answer)


async def test_checks_that_the_budget_does_not_reach_are_counted_and_the_answer_stands(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with indexed(tmp_path, server) as (memory, regions):
        limit = 3 + 4 * regions + 1
        answer = await memory.ask(QUESTION, driver="lead", budget=Budget(max_calls=limit))
    assert len(server.requests) == limit
    assert answer.answer.startswith(RIGHT)
    assert any("could not be checked" in note for note in answer.ledger.notes)
    adds_up(answer)


async def test_a_budget_that_is_large_enough_changes_nothing(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with indexed(tmp_path, server) as (memory, _):
        budget = Budget(max_calls=1_000, max_seconds=1_000)
        answer = await memory.ask(QUESTION, driver="lead", budget=budget)
    assert [len(item.queries) for item in answer.rounds] == [2, 2, 0]
    assert answer.answer.startswith(RIGHT)
    assert not answer.ledger.notes
    adds_up(answer)


async def test_asked_again_with_the_same_budget_it_goes_on_where_it_had_stopped(
    tmp_path: Path, server: ScriptedServer
) -> None:
    answers: list[Answer] = []
    async with indexed(tmp_path, server) as (memory, regions):
        while not answers or not answers[-1].answer.startswith(RIGHT):
            budget = Budget(max_calls=regions)
            answers.append(await memory.ask(QUESTION, driver="lead", budget=budget))
            assert len(answers) < 12
    asked = [seen.text for seen in readings(server)]
    assert len(asked) == len(set(asked)) == 4 * regions, "no reading was paid for twice"


async def test_the_lead_is_told_that_the_budget_is_spent_and_answers_with_what_it_has() -> None:
    def read(request: ChatRequest) -> Says:
        text = text_of(request)
        if FILM_ONE in text or FILM_TWO in text:
            return reader_says(text)
        return CallFailed("The budget does not reach.", problem="budget", role="read")

    result, model = await ask_world(by_role(read=read), INDEX)
    lead = [request for request in model.requests if request.role == "lead"]
    assert len(lead) == 2
    words = lead[-1].messages
    assert any(SPENT in message.content for message in words if message.role == "user")
    results = [message.content for message in words if message.role == "tool"]
    assert all("were not asked, because the budget is spent" in text for text in results)
    assert not any("readers failed" in text for text in results)
    assert result.answer.ledger.ok
    assert totals(result.answer)[4] > 0


async def test_readings_under_way_are_broken_off_when_the_time_is_over() -> None:
    async def says(request: ChatRequest) -> Says:
        if request.role == "read":
            await asyncio.Event().wait()
        return by_role()(request)

    profile = profile_of()
    spending = Spending(Budget(max_seconds=0.05), profile, lead_roles(profile), clock=lambda: 0.0)
    async with asyncio.timeout(10):
        result, _ = await ask_world(says, INDEX, profile=profile, within=spending.wrap)
    assert result.answer.answer.startswith(NOTHING)
    assert totals(result.answer) == (0, 0, 0, 0, 3)
    assert result.answer.ledger.ok


async def test_where_the_lead_answers_itself_the_kept_call_goes_to_the_answer_model(
    tmp_path: Path, server: ScriptedServer
) -> None:
    own = {"hints": False, "answer_from": "lead"}
    async with indexed(tmp_path, server, lead=own) as (memory, _):
        stopped = await memory.ask(QUESTION, driver="lead", budget=Budget(max_calls=7))
        whole = await memory.ask(QUESTION, driver="lead")
    assert stopped.usage["answer"].calls == 1 and stopped.citations
    assert "answer" not in whole.usage and whole.answer.startswith(RIGHT)


async def test_a_budget_of_money_needs_the_prices_of_all_roles_of_the_lead(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with indexed(tmp_path, server) as (memory, _):
        with pytest.raises(ConfigError, match=r"roles\.lead\.price"):
            await memory.ask(QUESTION, driver="lead", budget=Budget(max_cost=1.0))


async def test_hints_that_the_budget_does_not_reach_fail_nothing(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with indexed(tmp_path, server, lead={}) as (memory, regions):
        answer = await memory.ask(QUESTION, driver="lead", budget=Budget(max_calls=2))
    assert len(server.requests) == 1
    assert totals(answer) == (0, 0, 0, 0, regions)
    assert answer.answer.startswith(NOTHING)
    adds_up(answer)


def test_a_script_without_a_loop_sets_budgets_too(tmp_path: Path, server: ScriptedServer) -> None:
    profile = profile_of(server.base_url, **SMALL)
    with Memory.open(tmp_path / "memory.sqlite", profile=profile) as memory:
        report = memory.add_sync(TEXT, title="Lives", budget=Budget(max_calls=2))
        answer = memory.ask_sync(QUESTION, driver="lead", budget=Budget(max_calls=0))
    assert report.cards.degraded == report.regions - 2
    assert answer.answer.startswith(NOTHING)
