"""The whole document before the answer model, up to its context; and no document at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.bench import Bench, Outcome, Spending
from benchmarks.chunks import Chunk, fill
from benchmarks.flat import FlatSystem
from benchmarks.suites.base import BenchDocument
from hmars.model import Usage

MARGIN = 1_024
"""Tokens of a context kept for instructions, question and headers."""
WIDE = 1_000_000


class FullContextSystem(FlatSystem):
    """Everything in reading order. What does not fit is cut off at the end, and said."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, size=4_096, count=WIDE)

    async def index(self) -> None:
        self._tokens = sum(chunk.tokens for chunk in self.chunks)

    async def rank(self, question: str, spending: Spending) -> Sequence[Chunk]:
        del question, spending
        return self.chunks

    async def ask(self, question: str) -> Outcome:
        spending = self.bench.spending()
        limit = await self._limit()
        kept = fill(self.chunks, limit, self.bench.tokenizer)
        outcome = await spending.answer(question, self.document, kept)
        if self._tokens <= limit:
            return outcome
        note = f"truncated: {limit} of {self._tokens} tokens fit the answer model"
        return replace(outcome, notes=(*outcome.notes, note))

    async def _limit(self) -> int:
        if self.bench.stack is None:
            return self._tokens
        context = await self.bench.stack.context_tokens("answer")
        reply = self.bench.profile.roles["answer"].max_tokens
        return max(256, (context or WIDE) - reply - MARGIN)


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
