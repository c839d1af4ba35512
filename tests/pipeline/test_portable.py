"""One document in one file: out of one store and into another, checked on the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from hmars import ConfigError, InputError
from tests.pipeline.support_dialogue import dialogue_memory, echo, harbour
from tests.scripted_server import ScriptedServer

Lines = list[dict[str, Any]]


@pytest.fixture
def server() -> Generator[ScriptedServer]:
    with ScriptedServer(echo) as running:
        yield running


async def exported(folder: Path, server: ScriptedServer) -> Path:
    home = folder / "home"
    home.mkdir()
    async with dialogue_memory(home, server) as memory:
        conversation = await memory.conversation("harbour", zone="Europe/Lisbon")
        await conversation.append(harbour(80))
        await conversation.forget(["h7"])
        await memory.export("harbour", folder / "harbour.jsonl")
    return folder / "harbour.jsonl"


async def test_a_conversation_moves_with_all_that_was_made_of_it_and_no_call_is_repeated(
    tmp_path: Path, server: ScriptedServer
) -> None:
    file = await exported(tmp_path, server)
    async with dialogue_memory(tmp_path / "home", server) as home:
        old = await home.hierarchy("harbour")
        turns = await (await home.conversation("harbour")).turns()
    before = len(server.requests)
    async with dialogue_memory(tmp_path, server, namespace="moved") as memory:
        document = await memory.import_file(file)
        new = await memory.hierarchy(document.id)
        conversation = await memory.conversation("harbour", zone="Europe/Lisbon")
        assert document.complete and len(server.requests) == before
        assert (new.cards, new.memories, new.groups) == (old.cards, old.memories, old.groups)
        assert [page.text for page in new.pages] == [page.text for page in old.pages]
        assert await conversation.turns() == turns
        again = await conversation.append(harbour(80))
        assert (again.added, again.forgotten) == (0, 1) and again.index.unchanged
        assert len(server.requests) == before
        await memory.import_file(file)  # twice is once
        assert len(await memory.documents()) == 1


async def test_a_plain_document_moves_as_well(tmp_path: Path, server: ScriptedServer) -> None:
    async with dialogue_memory(tmp_path, server) as memory:
        report = await memory.add("The ferry leaves at nine. \x00 é\r\n" * 60, title="Ferry")
        await memory.export("Ferry", tmp_path / "ferry.jsonl")
        old = await memory.hierarchy(report.document)
    async with dialogue_memory(tmp_path, server, namespace="moved") as memory:
        document = await memory.import_file(tmp_path / "ferry.jsonl")
        new = await memory.hierarchy(document.id)
    assert (new.regions[0].text, new.cards, new.memories) == (
        old.regions[0].text,
        old.cards,
        old.memories,
    )


async def test_an_export_never_overwrites(tmp_path: Path, server: ScriptedServer) -> None:
    file = await exported(tmp_path, server)
    before = file.read_bytes()
    async with dialogue_memory(tmp_path / "home", server) as memory:
        with pytest.raises(ConfigError, match="exists"):
            await memory.export("harbour", file)
        with pytest.raises(ConfigError, match="cannot be written"):
            await memory.export("harbour", tmp_path / "none" / "x.jsonl")
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["harbour.jsonl", "home"]


async def test_another_text_from_the_same_source_is_not_replaced(
    tmp_path: Path, server: ScriptedServer
) -> None:
    file = await exported(tmp_path, server)
    async with dialogue_memory(tmp_path / "home", server) as memory:
        conversation = await memory.conversation("harbour")
        await conversation.append(harbour(1, first=200))
        with pytest.raises(ConfigError, match="with another text"):
            await memory.import_file(file)
        assert len(await conversation.turns()) == 80


def first(lines: Lines, name: str) -> dict[str, Any]:
    return next(line for line in lines if name in line)


def cut_off(lines: Lines) -> None:
    del lines[-3:]


def other_text(lines: Lines) -> None:
    first(lines, "region")["region"][0]["text"] += "!"


def lost_region(lines: Lines) -> None:
    lines.remove(first(lines, "region"))
    lines[-1]["end"] -= 1


def forged_card(lines: Lines) -> None:
    first(lines, "card")["card"]["card"]["author"] = "somebody"


def stray_card(lines: Lines) -> None:
    first(lines, "card")["card"]["card"]["degraded"] = "yes"
    first(lines, "card")["card"]["content_key"] = "0" * 64


def stray_memory(lines: Lines) -> None:
    first(lines, "memory")["memory"]["content_key"] = "0" * 64


def other_turn(lines: Lines) -> None:
    first(lines, "turn")["turn"]["text"] = "Never said."


def twice_a_turn(lines: Lines) -> None:
    lines.insert(-1, first(lines, "turn"))
    lines[-1]["end"] += 1


def wild_group(lines: Lines) -> None:
    first(lines, "group")["group"][0] = 999


def newer(lines: Lines) -> None:
    first(lines, "header")["header"]["version"] = 2


def unknown_field(lines: Lines) -> None:
    first(lines, "card")["card"]["pickle"] = "gASVCg=="


def not_counted(lines: Lines) -> None:
    lines[-1]["end"] = 3


def headless(lines: Lines) -> None:
    del lines[0]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (cut_off, "was cut off after line"),
        (other_text, "not the text it was made from"),
        (lost_region, "not the text it was made from"),
        (forged_card, "not under the address"),
        (stray_card, "a card has no region"),
        (stray_memory, "a regional memory has no group"),
        (other_turn, "turns do not make its text"),
        (twice_a_turn, "cannot be imported"),
        (wild_group, "a group names a region"),
        (newer, "no export of this version"),
        (unknown_field, "no export of this version"),
        (not_counted, "3 lines were written"),
        (headless, "header is not the first"),
    ],
)
async def test_a_file_that_does_not_hold_together_is_refused_whole(
    tmp_path: Path, server: ScriptedServer, spoil: Callable[[Lines], None], message: str
) -> None:
    file = await exported(tmp_path, server)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    spoil(lines)
    file.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    async with dialogue_memory(tmp_path, server) as memory:
        with pytest.raises(InputError, match=message):
            await memory.import_file(file)
        assert await memory.documents() == []


async def test_what_is_no_export_is_refused(tmp_path: Path, server: ScriptedServer) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00 no text")
    (tmp_path / "b.txt").write_text("Dear diary", encoding="utf-8")
    (tmp_path / "c.txt").write_text("", encoding="utf-8")
    async with dialogue_memory(tmp_path, server) as memory:
        for name in ("a.txt", "b.txt", "c.txt", "none.txt"):
            with pytest.raises(InputError):
                await memory.import_file(tmp_path / name)
