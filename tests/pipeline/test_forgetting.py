"""What was forgotten is nowhere: not in the text, the cards, the caches, the prompts, the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from hmars import ConfigError, Memory, NotFoundError
from tests.pipeline.support_dialogue import (
    asked,
    dialogue_memory,
    echo,
    harbour,
    text_of,
    traces,
)
from tests.scripted_server import ScriptedServer

SECRET = "L-4408"


@pytest.fixture
def server() -> Generator[ScriptedServer]:
    with ScriptedServer(echo) as running:
        yield running


def diary(count: int = 60, at: int = 20) -> list[dict[str, object]]:
    turns = harbour(count)
    turns[at]["text"] = f"My locker number is {SECRET} from now on."
    return turns


async def test_a_forgotten_turn_leaves_no_byte_and_no_prompt_and_does_not_come_back(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with dialogue_memory(tmp_path, server) as memory:
        conversation = await memory.conversation("diary")
        await conversation.append(diary())
        first = await conversation.ask("What is the locker number?")
        assert any(SECRET in seen.text for seen in asked(server, "answer")) and first.citations
        index = await memory.hierarchy("diary")
        assert any(SECRET in card.summary for card in index.cards.values())
        assert any(SECRET in m.summary for m in index.memories.values())
        before, turns = len(server.requests), await conversation.turns()

        report = await conversation.forget(["h21"])

        assert report.scrubbed and (report.turns, report.left) == (1, 59)
        assert traces(tmp_path, SECRET) == []
        assert not any(SECRET in seen.text for seen in server.requests[before:])
        assert len(asked(server, "card", before)) <= 3 and len(asked(server, "region", before)) <= 2
        kept = await conversation.turns()
        assert kept == tuple(turn for turn in turns if turn.id != "h21")
        (document,) = await memory.documents()
        assert document.complete

        again = await conversation.append(diary())
        assert (again.forgotten, again.added, again.duplicates) == (1, 0, 59)
        await conversation.ask("What is the locker number?")
        assert not any(SECRET in seen.text for seen in server.requests[before:])
        await memory.export("diary", tmp_path / "diary.jsonl")
    assert SECRET not in (tmp_path / "diary.jsonl").read_text(encoding="utf-8")
    assert traces(tmp_path, SECRET) == []


async def test_without_the_forgotten_turn_the_answer_is_that_it_is_not_there(
    tmp_path: Path,
) -> None:
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        conversation = await memory.conversation("diary")
        await conversation.append(diary())
        question = "What is my locker number?"
        assert SECRET in (await conversation.ask(question)).answer
        await conversation.forget(["h21"])
        assert (await conversation.ask(question)).abstained
        assert traces(tmp_path, SECRET) == []


async def test_all_that_was_said_before_a_time_is_forgotten(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with dialogue_memory(tmp_path, server) as memory:
        conversation = await memory.conversation("diary")
        await conversation.append(diary())
        report = await conversation.forget(before="2024-01-03T00:00Z")
        text = await text_of(memory, "diary")
    assert (report.turns, report.left) == (39, 21)
    assert text.startswith("[Nova (assistant) | Wed 2024-01-03 00:00+00:00]\nRemark 0040")
    assert traces(tmp_path, SECRET) == [] and traces(tmp_path, "Remark 0039") == []


async def test_when_no_turn_is_left_the_document_goes_and_old_exports_stay_out(
    tmp_path: Path,
) -> None:
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        conversation = await memory.conversation("diary")
        await conversation.append(diary(5, 2))
        report = await conversation.forget(before="2025-01-01")
        assert report.document is None and await memory.documents() == []
        assert traces(tmp_path, SECRET) == []
        with pytest.raises(ConfigError, match="were forgotten before"):
            await conversation.append(diary(5, 2))
        assert (await conversation.append(harbour(1, first=9))).added == 1


async def test_forgetting_a_whole_conversation_lets_it_begin_anew(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        conversation = await memory.conversation("diary")
        await conversation.append(diary(5, 2))
        await conversation.forget(["h3"])
        await memory.forget("diary")
        assert (await conversation.append(diary(5, 2))).added == 5


async def test_the_same_number_in_another_file_is_not_the_forgotten_turn(tmp_path: Path) -> None:
    def file(text: str, day: int) -> list[dict[str, str]]:
        return [{"id": "1", "speaker": "Ana", "text": text, "time": f"2024-01-0{day}"}]

    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        conversation = await memory.conversation("diary")
        await conversation.append([*file("first", 1), *file("second", 2)])
        renamed = (await conversation.turns())[1].id
        await conversation.forget([renamed])
        assert (await conversation.append(file("second", 2))).forgotten == 1
        assert (await conversation.append(file("third", 3))).added == 1


async def test_an_unknown_turn_forgets_nothing(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        conversation = await memory.conversation("diary")
        await conversation.append(harbour(3))
        with pytest.raises(NotFoundError, match="nothing was forgotten"):
            await conversation.forget(["h1", "h9"])
        with pytest.raises(ConfigError, match="Say which turns"):
            await conversation.forget()
        assert len(await conversation.turns()) == 3


async def test_forgetting_keeps_cards_of_other_authors(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with dialogue_memory(tmp_path, server) as memory:
        await (await memory.conversation("diary")).append(diary())
        models = {card.author for card in (await memory.hierarchy("diary")).cards.values()}
    async with Memory.open(tmp_path / "memory.sqlite") as memory:  # without a model
        report = await (await memory.conversation("diary")).forget(["h21"])
        cards = (await memory.hierarchy("diary")).cards.values()
    assert report.index is not None and report.index.cards.written <= 3
    assert {card.author for card in cards} == {*models, "extractive/1"}


async def test_a_forgotten_document_is_nowhere_in_the_file(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with dialogue_memory(tmp_path, server) as memory:
        await memory.add(f"The locker number is {SECRET}. " * 30, title="Locker")
        await memory.add("The ferry leaves at nine. " * 30, title="Ferry")
        await memory.ask("What is the locker number?")
        assert traces(tmp_path, SECRET)
        report = await memory.forget("Locker")
        assert report.scrubbed and report.cards and report.replies
        assert traces(tmp_path, SECRET) == []
        assert [document.title for document in await memory.documents()] == ["Ferry"]


async def test_forgetting_with_another_tokenizer_is_refused_and_forgets_nothing(
    tmp_path: Path,
) -> None:
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        await (await memory.conversation("diary")).append(harbour(3))
    with closing(sqlite3.connect(tmp_path / "memory.sqlite")) as raw:
        raw.execute("UPDATE documents SET tokenizer = ?", (b"some-model/tokenizer",))
        raw.commit()
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        conversation = await memory.conversation("diary")
        with pytest.raises(ConfigError, match="use the profile that it was indexed with"):
            await conversation.forget(["h1"])
        assert len(await conversation.turns()) == 3
