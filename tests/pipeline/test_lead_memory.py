"""The lead through the facade and the command line, without a model."""

from __future__ import annotations

import gc
import json
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

from hmars.cli.main import main
from hmars.errors import ConfigError, InputError
from hmars.llm.budget import Budget
from hmars.memory import Memory
from hmars.query.lead import kept
from hmars.query.lead.sentences import SentenceIndex
from tests.lead_world import DEATH_ONE, FILM_ONE, document, profile_of

DIED = DEATH_ONE.replace("(", "died (")
TEXT = document(200, {20: DIED, 180: FILM_ONE})
QUESTION = "When did the director of The Copper Heron die?"


async def test_without_a_model_the_lead_follows_the_name_one_hop_further_and_quotes(
    tmp_path: Path,
) -> None:
    async with Memory.open(tmp_path / "m.sqlite") as memory:
        await memory.add(TEXT, title="Lives")
        single = await memory.ask(QUESTION)
        answer = await memory.ask(QUESTION, driver="lead")
    assert single.rounds == ()
    assert [len(item.queries) for item in answer.rounds] == [1, 1, 0]
    assert "Tomas Vrel" in answer.rounds[1].queries[0]
    assert not answer.abstained
    assert {citation.quote for citation in answer.citations} == {FILM_ONE, DIED}
    assert answer.ledger.ok and not answer.usage
    ledger = answer.ledger
    assert ledger.selected + ledger.abstained == ledger.regions


async def test_without_a_model_what_the_text_does_not_say_is_not_answered(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "m.sqlite") as memory:
        await memory.add(TEXT, title="Lives")
        answer = await memory.ask("Who composed the anthem of Ostrava?", driver="lead")
    assert answer.abstained and not answer.citations


async def test_the_sentences_of_a_scope_are_kept_for_the_next_question_until_they_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[SentenceIndex]] = []

    def counted(*given: Any) -> SentenceIndex:
        index = SentenceIndex(*given)
        made.append(weakref.ref(index))
        return index

    monkeypatch.setattr(kept, "SentenceIndex", counted)
    async with Memory.open(tmp_path / "m.sqlite") as memory:
        report = await memory.add(TEXT, title="Lives")
        first = await memory.ask(QUESTION, driver="lead")
        second = await memory.ask(QUESTION, driver="lead")
        assert len(made) == 1 and made[0]() is not None
        assert (first.answer, first.citations) == (second.answer, second.citations)
        await memory.add(TEXT.replace("1958", "1959"), title="Lives")
        edited = await memory.ask(QUESTION, driver="lead")
        assert len(made) == 2 and any("1959" in item.quote for item in edited.citations)
        await memory.forget(report.document)
        gc.collect()
        assert [index() for index in made] == [None, None]


def test_a_conversation_is_asked_by_the_lead_and_with_a_budget_too(tmp_path: Path) -> None:
    turns = [
        {"speaker": "Ana", "text": FILM_ONE, "time": "2024-01-01T08:00:00Z"},
        {"speaker": "Nova", "text": DIED, "time": "2024-01-02T08:00:00Z"},
    ]
    with Memory.open(tmp_path / "m.sqlite") as memory:
        conversation = memory.conversation_sync("films")
        conversation.append_sync(turns)
        answer = conversation.ask_sync(QUESTION, driver="lead", budget=Budget(max_calls=0))
    assert [len(item.queries) for item in answer.rounds] == [1, 1, 0]
    assert {citation.quote for citation in answer.citations} == {FILM_ONE, DIED}


async def test_a_trajectory_needs_the_lead_and_a_place_to_write_to(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "m.sqlite") as memory:
        await memory.add(TEXT, title="Lives")
        with pytest.raises(ConfigError, match="Only the lead"):
            await memory.ask(QUESTION, trajectory=tmp_path / "t.jsonl")
        with pytest.raises(InputError, match="cannot be written"):
            await memory.ask(QUESTION, driver="lead", trajectory=tmp_path / "m.sqlite" / "t")


def test_the_command_line_asks_the_lead_and_writes_one_line_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, store, trajectory = tmp_path / "lives.txt", tmp_path / "m.sqlite", tmp_path / "t.jsonl"
    text.write_text(TEXT, encoding="utf-8")

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["hmars", *arguments, "--store", str(store)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in (0, None)
        return capsys.readouterr().out

    run("index", str(text))
    asked = ("ask", QUESTION, "--driver", "lead", "--trajectory", str(trajectory))
    answer = json.loads(run(*asked, "--json"))
    assert [len(item["queries"]) for item in answer["rounds"]] == [1, 1, 0]
    assert {"queries", "findings", "invalid", "seconds"} <= set(answer["rounds"][0])
    assert "Ledger: " in run(*asked)
    lines = trajectory.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["question"] for line in lines] == [QUESTION, QUESTION]


async def test_a_profile_without_a_model_for_the_readers_says_what_to_add(tmp_path: Path) -> None:
    profile = profile_of()
    roles = {role: item for role, item in profile.roles.items() if role != "read"}
    profile = profile.model_copy(update={"roles": roles})
    async with Memory.open(tmp_path / "m.sqlite", profile=profile) as memory:
        with pytest.raises(ConfigError, match=r"no model for the role 'read': add \[roles.read\]"):
            await memory.ask(QUESTION, driver="lead")
