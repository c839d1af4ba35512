"""Documents that change, documents that are alike, and namespaces that see only themselves."""

from __future__ import annotations

import os
import random
from collections.abc import Generator
from pathlib import Path

import pytest

from hmars import IndexReport, Memory, NotFoundError
from tests.pipeline.support_dialogue import asked, dialogue_memory, echo, traces
from tests.scripted_server import ScriptedServer

ADDED = "A paragraph that was not there before tells of a lantern, a rope and a quiet tide.\n\n"
REUSED = 0.9


@pytest.fixture
def server() -> Generator[ScriptedServer]:
    with ScriptedServer(echo) as running:
        yield running


def chronicle(paragraphs: int) -> str:
    """A long text of our own, uneven as prose is."""
    chance = random.Random(5)
    nouns = [
        "harbour",
        "lamp",
        "crate",
        "ferry",
        "ledger",
        "rope",
        "pilot",
        "keeper",
        "island",
        "storm",
        "letter",
        "bell",
    ]
    verbs = [
        "saw",
        "lost",
        "mended",
        "carried",
        "counted",
        "sold",
        "painted",
        "found",
        "feared",
        "praised",
    ]
    made: list[str] = []
    for number in range(paragraphs):
        sentences = [
            f"The {chance.choice(nouns)} {chance.choice(verbs)} the {chance.choice(nouns)} "
            f"of pier {chance.randrange(900)}."
            for _ in range(chance.randrange(2, 12))
        ]
        heading = f"Chapter {number // 60 + 1}\n\n" if number % 60 == 0 else ""
        made.append(heading + " ".join(sentences))
    return "\n\n".join(made)


async def reindexed(folder: Path, text: str) -> IndexReport:
    path = folder / "book.txt"
    path.write_text(text, encoding="utf-8")
    async with Memory.open(folder / "memory.sqlite") as memory:
        await memory.add(path)
        path.write_text(ADDED + text, encoding="utf-8")
        return await memory.add(path)


async def test_a_paragraph_at_the_start_leaves_nine_of_ten_cards_as_they_are(
    tmp_path: Path,
) -> None:
    report = await reindexed(tmp_path, chronicle(6000))
    assert report.regions >= 30
    assert report.cards.reused >= REUSED * report.regions


async def test_a_paragraph_at_the_start_of_war_and_peace_leaves_nine_of_ten_cards(
    tmp_path: Path,
) -> None:
    folder = os.environ.get("HMARS_DATA")
    found = sorted(Path(folder).rglob("*war*peace*.txt")) if folder else []
    if not found:
        pytest.skip("HMARS_DATA names no folder that holds War and Peace")
    report = await reindexed(tmp_path, found[0].read_text(encoding="utf-8"))
    assert report.regions > 50
    assert report.cards.reused >= REUSED * report.regions


async def test_old_text_never_answers_again(tmp_path: Path, server: ScriptedServer) -> None:
    path = tmp_path / "life.txt"
    old, new = "The keeper is 987 months old.", "The keeper is 631 months old."
    filler = "\n\n".join(chronicle(120).split("\n\n"))
    async with dialogue_memory(tmp_path, server) as memory:
        path.write_text(f"{filler}\n\n{old}\n\n{filler}", encoding="utf-8")
        first = await memory.add(path)
        await memory.ask("How many months old is the keeper?")
        before = len(server.requests)
        path.write_text(f"{filler}\n\n{new}\n\n{filler}", encoding="utf-8")
        report = await memory.add(path)
        assert report.cards.written == len(asked(server, "card", before)) <= 2
        await memory.ask("How many months old is the keeper?")
        index = await memory.hierarchy(report.document)
        assert (index.document.version, report.document) == (2, first.document)
    later = [seen.text for seen in server.requests[before:]]
    assert not any("987" in text for text in later) and any("631" in text for text in later)
    written = [*index.cards.values(), *index.memories.values()]
    assert not any("987 months" in body.summary for body in written)
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        answer = await memory.ask("How many months old is the keeper?")
    assert "631" in answer.answer and "987" not in answer.answer
    assert traces(tmp_path, old) == []


async def test_running_again_on_the_same_files_changes_nothing(
    tmp_path: Path, server: ScriptedServer
) -> None:
    path = tmp_path / "life.txt"
    path.write_text(chronicle(40), encoding="utf-8")
    async with dialogue_memory(tmp_path, server) as memory:
        await memory.add(path)
        (first,) = await memory.documents()
        before = len(server.requests)
        report = await memory.add(path)
        assert report.unchanged and len(server.requests) == before
        assert await memory.documents() == [first]


async def test_the_same_name_in_two_folders_and_the_same_text_twice_are_two_documents(
    tmp_path: Path, server: ScriptedServer
) -> None:
    text = chronicle(40)
    paths = [tmp_path / name / "notes.txt" for name in ("one", "two")]
    async with dialogue_memory(tmp_path, server) as memory:
        for path in paths:
            path.parent.mkdir()
            path.write_text(text, encoding="utf-8")
        first = await memory.add(paths[0])
        before = len(server.requests)
        second = await memory.add(paths[1])
        assert len(server.requests) == before
        assert first.document != second.document
        assert (second.cards.written, second.cards.reused) == (0, second.regions)
        assert second.regional.written == 0
        paths[1].write_text("Something else altogether.", encoding="utf-8")
        await memory.add(paths[1])
        kept = await memory.hierarchy(first.document)
        assert "".join(page.text for page in kept.pages) == text
        await memory.forget(second.document)
        (left,) = await memory.documents()
    assert left.id == first.document and left.complete


async def test_a_namespace_sees_only_itself(tmp_path: Path, server: ScriptedServer) -> None:
    async with (
        dialogue_memory(tmp_path, server, namespace="ours") as ours,
        dialogue_memory(tmp_path, server, namespace="theirs") as theirs,
    ):
        report = await ours.add("The vault code is 7731. " * 20, title="Vault")
        conversation = await ours.conversation("ana")
        await conversation.append([{"speaker": "Ana", "text": "The vault code is 7731."}])
        before = len(server.requests)
        assert await theirs.documents() == []
        for ref in (report.document, "Vault", "text:Vault", "ana"):
            for refused in (
                theirs.hierarchy(ref),
                theirs.page(ref, 1),
                theirs.forget(ref),
                theirs.ask("What is the vault code?", document=ref),
                theirs.find_conversation(ref),
                theirs.export(ref, tmp_path / "x.jsonl"),
            ):
                with pytest.raises(NotFoundError, match="no document"):
                    await refused
        assert (await theirs.ask("What is the vault code?")).abstained
        assert await (await theirs.conversation("ana")).turns() == ()
        assert len(server.requests) == before
        # Cards are theirs, too: the same text is paid for again, and forgotten apart.
        other = await theirs.add("The vault code is 7731. " * 20, title="Vault")
        assert other.cards.written == other.regions and other.cards.reused == 0
        await theirs.forget("Vault")
        assert all(document.complete for document in await ours.documents())
        assert len(await ours.documents()) == 2
