"""Killed, interrupted, cancelled, two at once, no room, no permission: nothing paid for is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, Pool

from benchmarks import durability
from hmars import Memory, StoreError
from hmars.store import AsyncStore, Store
from tests.pipeline.support_server import entries, piers, profile_for, stage, write_profile
from tests.scripted_server import Gate, Reply, ScriptedServer, Seen

COUNT = 12
GUARD_S = 60


@pytest.fixture
def server() -> Generator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


def cards(server: ScriptedServer) -> list[int]:
    return [entries(seen)[0] for seen in server.requests if stage(seen) == "card"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a fork server")
def test_killed_at_random_points_no_reply_is_lost_and_no_call_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    result = durability.run(20, seed=3, context=durability.fork_server("benchmarks.durability"))
    assert result.points.total() == 20
    assert (result.lost, result.repeated, result.corrupted, result.unfinished) == (0, 0, 0, 0)


def command(folder: Path, file: Path, *more: str) -> list[str]:
    store = str(folder / "memory.sqlite")
    return [sys.executable, "-m", "hmars.cli.main", *more, str(file), "--store", store]


async def test_an_interrupted_run_stops_at_once_keeps_what_is_paid_and_goes_on(
    tmp_path: Path, server: ScriptedServer
) -> None:
    profile = write_profile(tmp_path, server.base_url, endpoint="in_flight = 3")
    text = tmp_path / "piers.txt"
    text.write_text(piers(COUNT), encoding="utf-8")
    arguments = [*command(tmp_path, text, "index"), "--profile", str(profile)]
    server.on(lambda seen: stage(seen) == "card" and entries(seen)[0] > 6, Reply(hang=True))
    child = await asyncio.create_subprocess_exec(
        *arguments,
        stderr=subprocess.PIPE,
        # A shell that runs the tests in the background has the signal ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    async with asyncio.timeout(GUARD_S):
        while not (server.in_flight == 3 and len(server.requests) >= 9):
            try:
                await server.until(lambda: server.in_flight == 3 and len(server.requests) >= 9)
            except TimeoutError:
                continue  # the child is still importing on a busy machine
        child.send_signal(signal.SIGINT)
        _, said = await child.communicate()
    await server.until(lambda: server.in_flight == 0)
    assert child.returncode == 130
    assert b"interrupted; what was written so far is kept" in said
    assert b"Traceback" not in said
    finished = [number for number in cards(server) if number <= 6]
    server.on(lambda seen: stage(seen) == "card", None)
    async with Memory.open(
        tmp_path / "memory.sqlite", profile=profile_for(tmp_path, server.base_url)
    ) as memory:
        (unfinished,) = await memory.documents()
        # Of a reply that was just coming in, the reply itself is kept and the card not yet made.
        assert unfinished.cards_missing >= COUNT - 6
        before = len(server.requests)
        await memory.add(text)
        (document,) = await memory.documents()
    again = [entries(seen)[0] for seen in server.requests[before:] if stage(seen) == "card"]
    assert document.complete
    assert sorted(finished) == list(range(1, 7)) and sorted(again) == list(range(7, COUNT + 1))


async def test_a_cancelled_task_leaves_no_request_and_the_permits_are_back(
    tmp_path: Path, server: ScriptedServer
) -> None:
    profile = profile_for(tmp_path, server.base_url, endpoint="in_flight = 3")
    async with Memory.open(tmp_path / "memory.sqlite", profile=profile) as memory:
        for _ in range(3):
            server.on(lambda seen: stage(seen) == "card", Reply(hang=True))
            task = asyncio.create_task(memory.add(piers(COUNT), title="Piers"))
            await server.until(lambda: server.in_flight == 3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.until(lambda: server.in_flight == 0)
        gate = Gate()
        server.peak = 0
        server.on(lambda seen: stage(seen) == "card", lambda seen: held(gate))
        task = asyncio.create_task(memory.add(piers(COUNT), title="Piers"))
        await server.until(lambda: server.in_flight == 3)
        gate.open()
        report = await task
    assert server.peak == 3 and report.cards.written == COUNT and report.cards.degraded == 0


def held(gate: Gate) -> Reply:
    card = '{"summary": "held", "topics": [], "entities": [], "page_index": []}'
    return Reply(card, gate=gate)


async def test_two_processes_index_into_one_store_at_once(
    tmp_path: Path, server: ScriptedServer
) -> None:
    profile = write_profile(tmp_path, server.base_url)
    gate = Gate()

    def together(seen: Seen) -> Reply | None:
        return held(gate) if stage(seen) == "card" else None

    server.on(lambda seen: stage(seen) == "card", together)
    children: list[asyncio.subprocess.Process] = []
    for name, first in (("one", 1), ("two", 101)):
        text = tmp_path / f"{name}.txt"
        text.write_text(piers(first + 7).split(f"Entry {first:03d}", 1)[1], encoding="utf-8")
        arguments = [*command(tmp_path, text, "index"), "--profile", str(profile)]
        children.append(await asyncio.create_subprocess_exec(*arguments, stderr=subprocess.PIPE))
    async with asyncio.timeout(GUARD_S):
        while server.in_flight < 12:  # both are in the middle of their work
            try:
                await server.until(lambda: server.in_flight >= 12)
            except TimeoutError:
                continue
        gate.open()
        for child in children:
            _, said = await child.communicate()
            assert child.returncode == 0, said
    async with Memory.open(tmp_path / "memory.sqlite") as memory:
        documents = await memory.documents()
    assert len(documents) == 2 and all(document.complete for document in documents)


async def test_a_full_disk_is_one_sentence_and_loses_nothing(
    tmp_path: Path, server: ScriptedServer
) -> None:
    profile = profile_for(tmp_path, server.base_url)
    path = tmp_path / "memory.sqlite"
    async with Memory.open(path, profile=profile) as memory:
        await memory.add(piers(3), title="Piers")

    def limit(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA page_count")
        cursor.execute(f"PRAGMA max_page_count = {cursor.fetchall()[0][0] + 12}")
        cursor.close()

    big = "\n\n".join(f"{piers(1)} {number}" for number in range(150))
    event.listen(Pool, "connect", limit)
    try:
        async with Memory.open(path, profile=profile) as memory:
            with pytest.raises(StoreError, match="disk is full"):
                await memory.add(big, title="Big")
            await server.until(lambda: server.in_flight == 0)
            (kept,) = [d for d in await memory.documents() if d.title == "Piers"]
            assert kept.complete
    finally:
        event.remove(Pool, "connect", limit)
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    async with Memory.open(path, profile=profile) as memory:
        await memory.add(big, title="Big")
        assert all(document.complete for document in await memory.documents())


async def test_a_store_that_is_cut_off_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    async with Memory.open(path) as memory:
        await memory.add(piers(200), title="Piers")
    os.truncate(path, path.stat().st_size // 2)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="damaged or cut off"):
        Memory.open(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [path.name]


async def test_a_store_that_can_only_be_read_answers_and_refuses_to_be_written(
    tmp_path: Path, server: ScriptedServer
) -> None:
    path = tmp_path / "memory.sqlite"
    profile = profile_for(tmp_path, server.base_url)
    async with Memory.open(path, profile=profile) as memory:
        await memory.add(piers(3), title="Piers")
        await (await memory.conversation("ana")).append([{"speaker": "Ana", "text": "Hello."}])
    before = path.read_bytes()
    store = AsyncStore(Store.open(path, read_only=True))
    async with Memory(store, profile, "default") as memory:
        answer = await memory.ask("Who is the keeper of pier 1?")
        assert answer.ledger.ok and answer.usage["select"].calls == 4
        conversation = await memory.conversation("ana")
        for refused in (
            memory.add("Something new.", title="New"),
            memory.forget("Piers"),
            conversation.append([{"speaker": "Ana", "text": "More."}]),
            conversation.forget([(await conversation.turns())[0].id]),
        ):
            with pytest.raises(StoreError, match="is read-only"):
                await refused
    assert path.read_bytes() == before
