"""What flat systems have in common: chunks in an order, cut off at K or at a budget."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.bench import Bench, Outcome, Spending, passed_of
from benchmarks.chunks import Chunk, chunked, fill
from benchmarks.suites.base import BenchDocument
from hmars.errors import ConfigError
from hmars.model import Usage


class FlatSystem(ABC):
    """Subclasses index chunks and put them in order for a question."""

    def __init__(self, bench: Bench, *, size: int, count: int) -> None:
        self.bench = bench
        self._size = size
        self._count = count
        self._document: BenchDocument | None = None
        self.chunks: list[Chunk] = []

    @property
    def document(self) -> BenchDocument:
        if self._document is None:
            raise ConfigError("Build the system on a document before asking it.")
        return self._document

    async def build(self, document: BenchDocument) -> Mapping[str, Usage]:
        self._document = document
        self.chunks = [
            chunk
            for chunk in chunked(document.text, self.bench.tokenizer, self._size)
            if chunk.text.strip()
        ]
        await self.index()
        return {}

    @abstractmethod
    async def index(self) -> None:
        """Prepare `self.chunks` for ranking."""

    @abstractmethod
    async def rank(self, question: str, spending: Spending) -> Sequence[Chunk]:
        """Chunks, best first."""

    async def ask(self, question: str) -> Outcome:
        """The answer from the first K chunks, cut to the context of the answer model, and said."""
        spending = self.bench.spending()
        wanted = (await self.rank(question, spending))[: self._count]
        room = await self.bench.evidence_room()
        tokens = sum(chunk.tokens for chunk in wanted)
        kept = wanted if tokens <= room else fill(wanted, room, self.bench.tokenizer)
        outcome = await spending.answer(question, self.document, kept)
        if tokens <= room:
            return outcome
        note = f"truncated: {room} of {tokens} tokens fit the answer model"
        return replace(outcome, notes=(*outcome.notes, note))

    async def retrieve(self, question: str, budget: int) -> Outcome:
        spending = self.bench.spending()
        ranked = await self.rank(question, spending)
        chosen = fill(ranked, budget, self.bench.tokenizer)
        return Outcome("", passed_of(chosen), spending.usage, spending.seconds)

    async def close(self) -> None:
        return None
