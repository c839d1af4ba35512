"""What held when: superseded facts, questions as of a time, and who said what."""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime
from pathlib import Path

import pytest

from hmars import InputError, Memory
from hmars.graph import across_groups
from hmars.settings import load_profile
from tests.pipeline.support_dialogue import asked, dialogue_memory, echo, harbour, remarks, text_of
from tests.scripted_server import ScriptedServer

KEY = [
    {"speaker": "Ana", "time": "2024-01-10T09:00Z", "text": "The spare key hangs on the hook."},
    {"speaker": "Nova", "role": "assistant", "time": "2024-01-10T09:01Z", "text": "Noted."},
    {"speaker": "Ana", "time": "2024-04-02T10:15Z", "text": "The spare key is in the red box."},
]
LATE = {"speaker": "Ana", "time": "2023-01-05T09:00Z", "text": "The spare key is on the bench."}


@pytest.fixture
def server() -> Generator[ScriptedServer]:
    with ScriptedServer(echo) as running:
        yield running


async def test_the_answering_model_sees_statements_in_time_order_with_their_times(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with dialogue_memory(tmp_path, server) as memory:
        conversation = await memory.conversation("ana")
        await conversation.append(KEY)
        await conversation.append([LATE])  # older, told later
        await conversation.ask("Where is the spare key now?")
    prompt = asked(server, "answer")[-1].text
    places = [prompt.index(text) for text in ("2023-01-05", "2024-01-10", "2024-04-02")]
    assert places == sorted(places)
    assert prompt.index("on the bench") < prompt.index("on the hook") < prompt.index("red box")
    for rule in ("the later one holds now", "say since when", "suggestion is not a decision"):
        assert rule in prompt
    assert "What is said of one person is not true of another" in prompt


async def test_speakers_and_roles_stand_in_full_before_what_they_said(
    tmp_path: Path, server: ScriptedServer
) -> None:
    room = [
        {"speaker": "Tobin Hale", "text": "My brother Jory dislikes rowing.", "time": 1704103200},
        {"speaker": "Ada Lind", "text": "I like chess.", "time": 1704103300},
        {"speaker": "Ada Moor", "text": "I like fishing.", "time": 1704103400},
        {"speaker": "Nova", "role": "assistant", "text": "Try sailing.", "time": 1704103500},
    ]
    async with dialogue_memory(tmp_path, server) as memory:
        conversation = await memory.conversation("room")
        await conversation.append(room)
        await conversation.ask("What does Ada Moor like?")
    for name in ("card", "select", "answer"):
        prompt = asked(server, name)[-1].text
        assert prompt.index("[Ada Lind |") < prompt.index("I like chess.")
        assert prompt.index("[Ada Moor |") < prompt.index("I like fishing.")
        assert "[Nova (assistant) |" in prompt


async def test_as_of_a_time_no_model_sees_a_later_word_and_every_region_is_in_the_ledger(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with dialogue_memory(tmp_path, server) as memory:
        conversation = await memory.conversation("harbour")
        report = await conversation.append(harbour(120))
        turns = await conversation.turns()
        before = len(server.requests)
        answer = await conversation.ask("Which lamp was seen to?", as_of=turns[49].time.at)
        text = await text_of(memory, report.document)
    seen = [number for request in server.requests[before:] for number in remarks(request)]
    assert not any("2024-01-03 11:00" in request.text for request in server.requests[before:])
    assert max(seen) == 50 and 50 in remarks(asked(server, "answer", before)[0])
    assert answer.ledger.regions == report.index.regions
    assert answer.ledger.selected + answer.ledger.abstained == report.index.regions
    assert answer.ledger.selected < report.index.regions - 3
    assert answer.ledger.regions_without_card == 0
    assert "70 later turns left out" in answer.ledger.notes[0]
    assert "Asked as of 2024-01-03T10:00+00:00" in asked(server, "answer", before)[0].text
    assert answer.citations
    for citation in answer.citations:
        assert text[citation.start : citation.end] == citation.quote
        assert citation.label.startswith("turn 50, Nova, Wed 2024-01-03 10:00")


@pytest.mark.parametrize(
    ("moment", "holds"),
    [
        ("2023-06-01", "on the bench"),
        ("2024-02-01", "on the hook"),
        ("2024-04-01", "on the hook"),
        ("2024-04-02", "red box"),
        ("2024-04-02T10:15Z", "red box"),
        ("2024-04-02T10:14Z", "on the hook"),
    ],
)
async def test_without_a_model_the_newest_statement_that_holds_comes_first(
    tmp_path: Path, moment: str, holds: str
) -> None:
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        conversation = await memory.conversation("ana")
        await conversation.append([*KEY, LATE])
        answer = await conversation.ask("Where is the spare key?", as_of=moment)
    first = answer.answer.split("\n\n")[0]
    assert holds in first


async def test_an_old_value_is_still_found_when_asked_for(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        conversation = await memory.conversation("ana")
        await conversation.append([*KEY, LATE])
        answer = await conversation.ask("Was the spare key ever on the bench?")
    assert "on the bench" in answer.answer


async def test_before_the_first_turn_there_is_nothing(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        conversation = await memory.conversation("ana")
        await conversation.append(KEY)
        answer = await conversation.ask("Where is the spare key?", as_of="2020-01-01")
        assert answer.abstained
        with pytest.raises(InputError, match="is not a time"):
            await conversation.ask("Where is the spare key?", as_of="last Friday")


async def test_a_document_without_times_stays_whole_and_the_ledger_says_so(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        await memory.add("The lighthouse has 40 steps.", title="Notes")
        answer = await memory.ask(
            "How many steps has the lighthouse?", as_of=datetime.fromisoformat("2020-01-01T00:00Z")
        )
    assert "40 steps" in answer.answer
    assert "Notes is no conversation" in answer.ledger.notes[0]


async def test_a_changed_number_is_a_temporal_update_across_groups_and_is_broadcast(
    tmp_path: Path, server: ScriptedServer
) -> None:
    price = "The mooring fee of berth Wren is {} crowns every month."
    turns = harbour(80)
    turns[2]["text"] = price.format(40)
    turns[70]["text"] = price.format(55)
    async with dialogue_memory(tmp_path, server) as memory:
        conversation = await memory.conversation("harbour")
        report = await conversation.append(turns)
        index = await memory.hierarchy(report.document)
        updates = [ref for ref in across_groups(index) if ref.kind == "temporal_update"]
        await conversation.ask("What is the mooring fee of berth Wren?")
    found = next(ref for ref in updates if "mooring fee" in ref.subject)
    assert "40 → 55" in found.note and found.regions[0] < found.regions[1]
    assert any(
        "temporal_update: The mooring fee of berth Wren" in seen.text
        and "40 → 55 (the latter in: " in seen.text
        for seen in asked(server, "broadcast")
    )


async def test_unrelated_statements_of_one_person_supersede_nothing(tmp_path: Path) -> None:
    facts = [
        {"speaker": "Ada", "text": "I am the harbour master here since 2019.", "time": 1704103200},
        {
            "speaker": "Ada",
            "text": "I administer the radio account with 3 keys.",
            "time": 1704203200,
        },
        {"speaker": "Ada", "text": "I demanded a yearly audit of 12 ledgers.", "time": 1704303200},
    ]
    profile = load_profile("extractive", ["partition.page_tokens=45", "partition.region_tokens=45"])
    async with Memory.open(tmp_path / "memory.sqlite", profile=profile) as memory:
        report = await (await memory.conversation("ada")).append(facts)
        index = await memory.hierarchy(report.document)
    references = [ref for m in index.memories.values() for ref in m.crossrefs]
    assert len(index.regions) == 3
    assert not [ref for ref in references if ref.kind == "temporal_update"]


async def test_a_citation_names_its_own_turn_and_time(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        conversation = await memory.conversation("ana")
        report = await conversation.append([*KEY, LATE])
        answer = await conversation.ask("Where is the spare key?")
        index = await memory.hierarchy(report.document)
    assert len(index.pages) == 1
    named = {citation.quote: citation.label for citation in answer.citations}
    newest = named["The spare key is in the red box."]
    assert newest == "turn 4, Ana, Tue 2024-04-02 10:15+00:00"
