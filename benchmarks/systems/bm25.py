"""BM25 over fixed chunks, as plain as it gets: no stemming, no phrases, no hierarchy."""

from __future__ import annotations

from collections.abc import Sequence

import bm25s
import numpy as np

from benchmarks.bench import Spending
from benchmarks.chunks import Chunk
from benchmarks.flat import FlatSystem
from benchmarks.suites.filters import plain_terms


class Bm25System(FlatSystem):
    async def index(self) -> None:
        self._index = bm25s.BM25()
        self._index.index(
            [plain_terms(chunk.text) or ["\u0000"] for chunk in self.chunks], show_progress=False
        )

    async def rank(self, question: str, spending: Spending) -> Sequence[Chunk]:
        del spending
        terms = [term for term in plain_terms(question) if term in self._index.vocab_dict]
        if not terms:
            return self.chunks
        order = np.argsort(-self._index.get_scores(terms), kind="stable")
        return [self.chunks[int(at)] for at in order]
