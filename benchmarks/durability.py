"""Kill `hmars index` and `hmars append` at random points and look at what is left.

    python -m benchmarks.durability --points 200

A child process works through a text and a conversation with models that a scripted server in this
process plays. It is killed (SIGKILL) when the n-th request arrives, while the n-th reply is being
sent, or before the n-th statement reaches the database; then it is started again, until all is
done. Counted are:

- replies lost: replies that were durable at a kill and are not at the next one, though the text
  they belong to is the same;
- calls repeated: requests whose reply was durable at a kill and that are sent again. A reply is
  durable once it, or the card or regional memory made of it, is in the store. What was under way
  (sent, not yet durable) may be asked again; how often that was so is shown beside it;
- stores corrupted: kills after which SQLite finds a fault, or a document's pages are not the text
  of its hash;
- unfinished: documents that are not complete after the last run.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import multiprocessing
import os
import random
import re
import signal
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Literal

from hmars.store import Store
from tests.scripted_server import ScriptedServer, Seen

ROLES = ("card", "region", "broadcast", "select", "answer")
KILLS_A_ROUND = 6
"""After so many, a store is finished and a new one begun."""
IN_FLIGHT = 4
_MARK = re.compile(r"mark-([0-9a-f]{16})")

Kind = Literal["request", "reply", "statement"]
KINDS: tuple[Kind, ...] = ("request", "reply", "statement")


@dataclass(frozen=True, slots=True)
class Point:
    """Where a child is killed: at the n-th event of a kind, counted from its start."""

    kind: Kind
    number: int


@dataclass
class Result:
    """What the kills did."""

    points: Counter[str] = field(default_factory=Counter[str])
    lost: int = 0
    repeated: int = 0
    corrupted: int = 0
    unfinished: int = 0
    under_way: int = 0
    """Requests that were sent again because their reply was not durable when the child died."""
    calls: int = 0

    def text(self) -> str:
        kinds = ", ".join(f"{count} by {kind}" for kind, count in sorted(self.points.items()))
        return (
            f"points tried: {self.points.total()} ({kinds})\n"
            f"replies lost: {self.lost}\n"
            f"calls repeated: {self.repeated} of {self.calls} "
            f"(under way at a kill and asked again: {self.under_way})\n"
            f"stores corrupted: {self.corrupted}\n"
            f"documents unfinished: {self.unfinished}"
        )


@dataclass
class Model:
    """Plays all models; kills a child at its point. Runs in the server's thread."""

    point: Point | None = None
    pid: int = 0
    arrived: int = 0

    def start(self, pid: int, point: Point | None) -> None:
        self.pid, self.point, self.arrived = pid, point, 0

    def __call__(self, seen: Seen) -> str:
        self.arrived += 1
        point = self.point
        if point is not None and self.arrived == point.number:
            if point.kind == "request":
                self._kill()
            elif point.kind == "reply":
                self._kill_soon(1 + point.number % 7)
        mark = f"mark-{mark_of(seen)}."
        return json.dumps(
            {"summary": mark, "topics": [], "entities": [], "page_index": []}
            if "page_index" in seen.text
            else {"summary": mark, "submap": [], "crossrefs": []}
        )

    def _kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def _kill_soon(self, steps: int) -> None:
        """A few turns of the server's loop later: before, in or after the sending of the reply."""
        loop = asyncio.get_running_loop()
        loop.call_soon(self._kill if steps == 0 else lambda: self._kill_soon(steps - 1))


def mark_of(seen: Seen) -> str:
    return hashlib.sha256(seen.text.encode()).hexdigest()[:16]


def child(arguments: Sequence[str], statement: int | None) -> None:
    """Run the command line; die before the `statement`-th statement."""
    if statement is not None:
        _die_before(statement)
    from hmars.cli.main import main

    sys.argv = ["hmars", *arguments]
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        main()


def _die_before(statement: int) -> None:
    from sqlalchemy import Engine, event

    count = 0

    def step(*_: object) -> None:
        nonlocal count
        count += 1
        if count == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "before_cursor_execute", step)
    event.listen(Engine, "commit", step)


# ---------------------------------------------------------------- inputs


def text(paragraphs: int, seed: int) -> str:
    chance = random.Random(seed)
    return "\n\n".join(
        f"Entry {n}. The keeper of pier {chance.randrange(900)} counted {chance.randrange(900)} "
        f"lamps before the ferry left with crate {chance.randrange(900)} and a letter for Orla."
        for n in range(paragraphs)
    )


def write_inputs(folder: Path, base_url: str, seed: int) -> list[list[str]]:
    """The commands of one round, each to be run until it succeeds."""
    roles = "\n".join(f'[roles.{role}]\nendpoint = "s"\nmodel = "scripted"' for role in ROLES)
    profile = folder / "profile.toml"
    profile.write_text(
        'agents = "model"\n[partition]\npage_tokens = 60\nregion_tokens = 120\ngroup_regions = 4\n'
        f'[endpoints.s]\nbase_url = "{base_url}"\nin_flight = {IN_FLIGHT}\n{roles}\n',
        encoding="utf-8",
    )
    book, first, both = folder / "book.txt", folder / "first.jsonl", folder / "both.jsonl"
    book.write_text(text(30, seed), encoding="utf-8")
    turns = [
        json.dumps({"speaker": "Ana", "text": said, "time": 1_700_000_000 + 60 * number})
        for number, said in enumerate(text(36, seed + 1).split("\n\n"))
    ]
    first.write_text("\n".join(turns[:20]), encoding="utf-8")
    both.write_text("\n".join(turns), encoding="utf-8")
    common = ["--store", str(folder / "memory.sqlite"), "--profile", str(profile)]
    return [
        ["index", str(book), *common],
        ["append", "harbour", str(first), *common],
        ["append", "harbour", str(both), *common],
    ]


# ---------------------------------------------------------------- what is in a store


@dataclass(frozen=True)
class State:
    """What is durable, and whether it holds together."""

    hashes: frozenset[str] = frozenset()
    marks: frozenset[str] = frozenset()
    sound: bool = True
    unfinished: int = 0


def look(path: Path) -> State:
    """Open a store as the next run would, after SQLite's own checks."""
    if not path.exists():
        return State()
    with Store.open(path) as store:
        documents = store.documents("default")
        sound = True
        for document in documents:
            index = store.load_index("default", document.id)
            whole = "".join(page.text for page in index.pages)
            sound &= hashlib.sha256(whole.encode()).hexdigest() == document.content_hash
    with closing(sqlite3.connect(path)) as raw:
        sound &= raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        sound &= raw.execute("PRAGMA foreign_key_check").fetchall() == []
        bodies = raw.execute(
            "SELECT payload FROM replies UNION SELECT body FROM cards "
            "UNION SELECT body FROM regional_memories"
        ).fetchall()
    marks = {mark for (body,) in bodies for mark in _MARK.findall(bytes(body).decode())}
    return State(
        frozenset(document.content_hash for document in documents),
        frozenset(marks),
        sound,
        sum(not document.complete for document in documents),
    )


# ---------------------------------------------------------------- the experiment


def fork_server(caller: str = "__main__") -> ForkServerContext:
    """Children are forked from a process that has imported all they need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([caller, "hmars.cli.main", "hmars.llm.stack"])
    return context


def run(points: int, seed: int, context: ForkServerContext | None = None) -> Result:
    """Kill until `points` points were reached."""
    chance, result, model = random.Random(seed), Result(), Model()
    context = context or fork_server()
    with ScriptedServer(model) as server:
        while result.points.total() < points:
            with tempfile.TemporaryDirectory(prefix="hmars-durability-") as folder:
                left = min(KILLS_A_ROUND, points - result.points.total())
                _Round(Path(folder), server, model, context, chance, result).run(left)
        result.calls = len(server.requests)
    return result


@dataclass
class _Round:
    folder: Path
    server: ScriptedServer
    model: Model
    context: ForkServerContext
    chance: random.Random
    result: Result
    state: State = State()
    asked: set[str] = field(default_factory=set[str])

    def run(self, kills: int) -> None:
        for command in write_inputs(self.folder, self.server.base_url, self.chance.randrange(99)):
            done = False
            while not done:
                point = self._point() if kills else None
                killed, done = self._once(command, point)
                if killed and point is not None:
                    kills -= 1
                    self.result.points[point.kind] += 1
        self.result.unfinished += self.state.unfinished

    def _point(self) -> Point:
        kind = self.chance.choice(KINDS)
        most = 150 if kind == "statement" else 12
        return Point(kind, self.chance.randrange(1, most))

    def _once(self, command: list[str], point: Point | None) -> tuple[bool, bool]:
        """Whether the child was killed, and whether it finished its command."""
        before = len(self.server.requests)
        statement = point.number if point is not None and point.kind == "statement" else None
        process = self.context.Process(target=child, args=(command, statement))
        process.start()
        self.model.start(process.pid or 0, point)
        process.join()
        self.model.start(0, None)
        code = process.exitcode
        process.close()
        if code not in (0, -signal.SIGKILL):
            raise RuntimeError(f"{command[0]} ended with {code}: neither killed nor done")
        self._compare(self.server.requests[before:])
        return code != 0, code == 0

    def _compare(self, sent: Sequence[Seen]) -> None:
        earlier, now = self.state, look(self.folder / "memory.sqlite")
        marks = list(map(mark_of, sent))
        self.result.repeated += sum(mark in earlier.marks for mark in marks)
        self.result.under_way += sum(
            mark in self.asked and mark not in earlier.marks for mark in marks
        )
        self.asked.update(marks)
        if now.hashes >= earlier.hashes:
            self.result.lost += len(earlier.marks - now.marks)
        self.result.corrupted += not now.sound
        self.state = now


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    result = run(options.points, options.seed)
    print(result.text())
    bad = result.lost + result.repeated + result.corrupted + result.unfinished
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
