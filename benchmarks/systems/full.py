"""The whole document before the answer model, up to its context; and no document at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.bench import Bench, Outcome, Spending
from benchmarks.chunks import Chunk
from benchmarks.flat import FlatSystem
from benchmarks.suites.base import BenchDocument
from hmars.model import Usage

ALL = 1_000_000


class FullContextSystem(FlatSystem):
    """Everything in reading order. What does not fit is cut off at the end, and said."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, size=4_096, count=ALL)

    async def index(self) -> None:
        """Nothing to prepare."""

    async def rank(self, question: str, spending: Spending) -> Sequence[Chunk]:
        del question, spending
        return self.chunks


class NoContextSystem:
    """What the answer model knows without the document: how far a set leaks into the world."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    async def build(self, document: BenchDocument) -> Mapping[str, Usage]:
        del document
        return {}

    async def ask(self, question: str) -> Outcome:
        spending = self._bench.spending()
        text = await spending.write("answer", "answer_from_knowledge", question=question)
        return Outcome(text, None, spending.usage, spending.seconds)

    async def close(self) -> None:
        return None
