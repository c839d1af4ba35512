"""Dense retrieval of N candidates, then one short call each to the selection model (S-HMARS E)."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bench import Bench, Spending
from benchmarks.chunks import Chunk
from benchmarks.flat import FlatSystem
from benchmarks.ranking import DenseRanker
from hmars.fanout import fan_out


class RerankSystem(FlatSystem):
    def __init__(self, bench: Bench, *, size: int, count: int, candidates: int) -> None:
        super().__init__(bench, size=size, count=count)
        self._candidates = candidates

    async def index(self) -> None:
        self._ranker = DenseRanker(self.bench)
        await self._ranker.index(self.chunks)

    async def rank(self, question: str, spending: Spending) -> Sequence[Chunk]:
        """Only the candidates: what the retriever missed cannot come back."""
        candidates = (await self._ranker.rank(question))[: self._candidates]

        async def score(chunk: Chunk) -> float:
            return await spending.yes("select", "rerank_chunk", chunk=chunk.text, question=question)

        scores = await fan_out(candidates, score, workers=16)
        order = sorted(range(len(candidates)), key=lambda at: -scores[at])
        return [candidates[at] for at in order]
