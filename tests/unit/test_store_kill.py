"""A process that dies at any moment loses nothing that was acknowledged."""

from __future__ import annotations

import multiprocessing
import os
import random
import sqlite3
import sys
from contextlib import closing
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from store_children import index_one, write_for_ever

from hmars.store import Store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a fork server")

KILLS = 20
GUARD_S = 60


@pytest.fixture
def fork_server(monkeypatch: pytest.MonkeyPatch) -> ForkServerContext:
    """Children are forked from a process that has imported all they need."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "hmars.store", "store_children"])
    return context


def check(store: Store, acknowledged: list[tuple[str, int]]) -> None:
    """What one process said was durable is there, whole."""
    done: dict[int, list[str]] = {}
    for step, number in acknowledged:
        done.setdefault(number, []).append(step)
    there = {document.source: document for document in store.documents("default")}
    last = max(done, default=0)
    for number, steps in done.items():
        document = there.get(f"/{number}")
        if "forget" in steps:
            assert document is None
            continue
        if document is None:
            # It was the last step, and was killed before it could say so.
            assert number == last
            assert number % 4 == 0
            continue
        index = store.load_index("default", document.id)
        assert "".join(page.text for page in index.pages).startswith(f"Document {number}. ")
        assert len(index.regions) - document.cards_missing >= steps.count("card")
        edited = document.version == 2
        assert "edit" not in steps or edited
        reply = store.get_reply("default", f"r{number}")
        assert (reply is not None) or edited or "reply" not in steps


def test_killed_at_any_moment_a_store_keeps_every_acknowledged_write(
    tmp_path: Path, fork_server: ForkServerContext
) -> None:
    path = tmp_path / "memory.hmars"
    chance = random.Random(4)
    runs: list[list[tuple[str, int]]] = []
    for run in range(KILLS):
        acknowledged: list[tuple[str, int]] = []
        runs.append(acknowledged)
        ours, theirs = fork_server.Pipe(duplex=False)
        child = fork_server.Process(target=write_for_ever, args=(path, run * 1000, theirs))
        child.start()
        theirs.close()
        for _ in range(chance.randrange(40)):
            assert ours.poll(GUARD_S)
            acknowledged.append(ours.recv())
        child.kill()
        child.join()
        while ours.poll():
            try:
                acknowledged.append(ours.recv())
            except EOFError:
                break
        ours.close()
        if path.exists():
            with Store.open(path) as store:
                check(store, acknowledged)
    with Store.open(path) as store:
        for acknowledged in runs:
            check(store, acknowledged)
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []


def test_two_processes_index_into_one_store_at_once(
    tmp_path: Path, fork_server: ForkServerContext
) -> None:
    path = tmp_path / "memory.hmars"
    pipes: list[Connection] = []
    children: list[BaseProcess] = []
    for name in ("one", "two"):
        ours, theirs = fork_server.Pipe()
        child = fork_server.Process(target=index_one, args=(path, name, theirs))
        child.start()
        pipes.append(ours)
        children.append(child)
    for pipe in pipes:
        assert pipe.poll(GUARD_S)
        pipe.recv()
    for pipe in pipes:
        pipe.send("go")
    for pipe, child in zip(pipes, children, strict=True):
        assert pipe.poll(GUARD_S)
        assert pipe.recv() == "done"
        child.join()
        pipe.close()
        assert child.exitcode == 0
    with Store.open(path) as store:
        assert [document.complete for document in store.documents("default")] == [True, True]
