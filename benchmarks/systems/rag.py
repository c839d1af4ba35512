"""Dense RAG: the K chunks most similar to the question (S-HMARS 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bench import Spending
from benchmarks.chunks import Chunk
from benchmarks.flat import FlatSystem
from benchmarks.ranking import DenseRanker


class RagSystem(FlatSystem):
    async def index(self) -> None:
        self._ranker = DenseRanker(self.bench)
        await self._ranker.index(self.chunks)

    async def rank(self, question: str, spending: Spending) -> Sequence[Chunk]:
        del spending
        return await self._ranker.rank(question)
