"""A conversation that grows: what is read again, what is known again, what stays."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Generator
from pathlib import Path

import pytest

from hmars import ConfigError, EndpointError, InputError, Memory, NotFoundError, SourceText
from hmars.indexing.turns import make_turns, merge, render
from hmars.settings import load_profile
from tests.pipeline.support_dialogue import (
    asked,
    dialogue_memory,
    echo,
    harbour,
    remarks,
    text_of,
    write_turns,
)
from tests.pipeline.support_server import stage
from tests.scripted_server import Reply, ScriptedServer


@pytest.fixture
def server() -> Generator[ScriptedServer]:
    with ScriptedServer(echo) as running:
        yield running


async def test_appending_reads_the_last_region_and_its_group_and_nothing_before(
    tmp_path: Path, server: ScriptedServer
) -> None:
    steps, size = 50, 20
    cards = memories = 0
    async with dialogue_memory(tmp_path, server, page=250, region=1000) as memory:
        conversation = await memory.conversation("harbour")
        tail, last_group, groups = 1, 1, 0
        for step in range(steps):
            before = len(server.requests)
            report = await conversation.append(harbour(size, first=step * size + 1))
            assert report.added == size and report.turns == (step + 1) * size
            read = asked(server, "card", before)
            assert min(remarks(seen)[0] for seen in read) >= tail
            assert len(asked(server, "region", before)) <= 1 + report.index.groups - last_group + 1
            index = await memory.hierarchy(report.document)
            last = index.regions[-1].text
            tail = min(int(word[7:11]) for word in last.split("\n") if word.startswith("Remark "))
            last_group, groups = len(index.groups), len(index.groups)
            cards += len(read)
            memories += len(asked(server, "region", before))
        index = await memory.hierarchy("harbour")
        complete = (await memory.documents())[0].complete
    assert complete and len(index.regions) > 50
    # Of each step, only the region it grows into is read once more (and where that was cut anew).
    assert cards <= len(index.regions) + 2 * steps
    assert memories <= groups + 2 * steps
    whole = render(merge((), make_turns(harbour(steps * size)).turns).turns, conversation="x")
    assert "".join(page.text for page in index.pages) == whole.source.text


async def test_appending_the_same_again_adds_nothing_and_asks_nobody(
    tmp_path: Path, server: ScriptedServer
) -> None:
    file = write_turns(tmp_path / "chat.jsonl", harbour(30))
    async with dialogue_memory(tmp_path, server) as memory:
        conversation = await memory.conversation("harbour")
        await conversation.append(file)
        before = len(server.requests)
        again = await conversation.append(file)
        kept = await conversation.turns()
    assert len(server.requests) == before
    assert (again.added, again.duplicates, again.turns) == (0, 30, 30)
    assert again.index.unchanged
    assert [turn.id for turn in kept] == [f"h{number}" for number in range(1, 31)]


async def test_turns_in_any_order_and_twice_make_the_same_conversation(tmp_path: Path) -> None:
    turns = harbour(60)
    mixed = [*turns, *turns[10:30]]
    random.Random(7).shuffle(mixed)
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        plain = await memory.conversation("plain")
        await plain.append(turns)
        wild = await memory.conversation("wild")
        for start in range(0, len(mixed), 9):
            await wild.append(mixed[start : start + 9])
        assert await text_of(memory, "wild") == await text_of(memory, "plain")
        assert [turn.id for turn in await wild.turns()] == [turn["id"] for turn in turns]


async def test_turns_survive_the_store_with_all_that_is_known_of_them(tmp_path: Path) -> None:
    odd = [
        {"speaker": "Zoë", "text": "Naïve time\x00 with NUL.", "time": "2024-01-01T10:00"},
        {"speaker": "Zoë", "text": "No time at all.", "session": "s|1"},
        {"speaker": "Nova", "role": "assistant", "text": "ok", "time": "2024-01-01T23:30-07:00"},
        {"speaker": "Nova", "text": "ok", "time": "nonsense", "id": "7", "replies_to": "6"},
        {"speaker": "Nova", "text": "another with this id", "time": "2024-05-01", "id": "7"},
    ]
    expected = merge((), make_turns(odd, zone="Europe/Lisbon").turns).turns
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        await (await memory.conversation("odd", zone="Europe/Lisbon")).append(odd)
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        conversation = await memory.conversation("odd")
        assert await conversation.turns() == expected
        again = await conversation.append(odd)
    assert again.added == 0 and again.duplicates == 5


async def test_an_edited_turn_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    turns = harbour(5)
    edited = {**turns[2], "text": "The lamp of pier 3 is broken."}
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        conversation = await memory.conversation("harbour")
        await conversation.append(turns)
        report = await conversation.append([edited])
        text = await text_of(memory, "harbour")
    assert (report.replaced, report.added, report.turns) == (1, 0, 5)
    assert "Remark 0003" not in text and "lamp of pier 3 is broken" in text


async def test_appends_at_the_same_time_keep_all_turns(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with (
        dialogue_memory(tmp_path, server) as one,
        dialogue_memory(tmp_path, server) as two,
    ):
        conversations = [await memory.conversation("harbour") for memory in (one, two, one, two)]
        async with asyncio.TaskGroup() as tasks:
            for number, conversation in enumerate(conversations):
                batch = harbour(12, first=number * 12 + 1)
                tasks.create_task(conversation.append(batch))
        kept = await conversations[0].turns()
        (document,) = await one.documents()
    assert [turn.id for turn in kept] == [f"h{number}" for number in range(1, 49)]
    assert document.complete


async def test_a_conversation_without_a_loop(tmp_path: Path) -> None:
    def work() -> str:
        with Memory.open(tmp_path / "memory.sqlite") as memory:
            conversation = memory.conversation_sync("harbour")
            conversation.append_sync(harbour(4))
            assert conversation.forget_sync(["h1"]).left == 3
            return conversation.ask_sync("Which crate went with letter 3?").answer

    assert "letter 3" in await asyncio.to_thread(work)


async def test_names_and_zones_that_cannot_work_are_refused(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        await memory.add("A text of its own.", title="Notes")
        (document,) = await memory.documents()
        with pytest.raises(ConfigError, match="not a conversation"):
            await memory.conversation(document.source)
        with pytest.raises(ConfigError, match="no time zone"):
            await memory.conversation("ana", zone="Europe/Atlantis")
        with pytest.raises(ConfigError, match="cannot be used"):
            await memory.conversation(" ")
        ana = await memory.conversation("ana", zone="Europe/Lisbon")
        with pytest.raises(NotFoundError, match="no turns yet"):
            await ana.ask("Where is the key?")
        with pytest.raises(InputError, match="has no turns"):
            await ana.append(b"")
        await ana.append(harbour(1))
        with pytest.raises(ConfigError, match="has the zone Europe/Lisbon"):
            await memory.conversation("ana", zone="Asia/Tokyo")


async def test_one_giant_turn_spans_pages_and_is_said_to(tmp_path: Path) -> None:
    giant = {"speaker": "Ana", "text": "The tide came in again. " * 400, "time": "2024-01-01"}
    profile = load_profile("extractive", ["partition.page_tokens=200"])
    async with Memory.open(tmp_path / "memory.sqlite", profile=profile) as memory:
        conversation = await memory.conversation("giant")
        report = await conversation.append([giant, *harbour(3)])
        index = await memory.hierarchy("giant")
    assert any("inside a turn" in warning for warning in report.index.warnings)
    headed = [page for page in index.pages if "Ana | Mon 2024-01-01" in page.context]
    assert len(headed) > 5


async def test_a_file_indexed_over_a_conversation_takes_its_turns_away(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        await (await memory.conversation("ana")).append(harbour(3))
        await memory.add(SourceText("Something else.", "ana", "ana"))
        with pytest.raises(ConfigError, match="not a conversation"):
            await memory.conversation("ana")


async def test_turns_are_kept_when_no_model_answers_and_the_next_append_finishes(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.on(lambda seen: stage(seen) == "card", Reply(status=401), times=1)
    async with dialogue_memory(tmp_path, server) as memory:
        conversation = await memory.conversation("harbour")
        with pytest.raises(EndpointError):
            await conversation.append(harbour(20))
        assert len(await conversation.turns()) == 20
        (document,) = await memory.documents()
        assert not document.complete
        again = await conversation.append(harbour(20))
        (document,) = await memory.documents()
    assert (again.added, again.duplicates) == (0, 20) and document.complete


async def test_a_cancelled_append_leaves_no_request_and_is_finished_later(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.on(lambda seen: stage(seen) == "card", Reply(hang=True), times=2)
    async with dialogue_memory(tmp_path, server) as memory:
        conversation = await memory.conversation("harbour")
        task = asyncio.create_task(conversation.append(harbour(20)))
        await server.until(lambda: server.in_flight == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.until(lambda: server.in_flight == 0)
        assert (await conversation.append(harbour(25))).turns == 25
        (document,) = await memory.documents()
    assert document.complete
