"""BM25 over units of any kind, by the library bm25s, with the rarity and weights it lacks."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import bm25s
import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]


class Bm25:
    """Scores of all units for weighted terms. Units are lists of terms; empty ones score zero."""

    def __init__(self, units: Sequence[Sequence[str]], *, k1: float = 1.2, b: float = 0.75) -> None:
        self.size = len(units)
        self._frequency: Counter[str] = Counter()
        for unit in units:
            self._frequency.update(set(unit))
        self._index: bm25s.BM25 | None = None
        if self._frequency:  # bm25s divides by the mean length of a unit
            self._index = bm25s.BM25(k1=k1, b=b, method="lucene")
            self._index.index([list(unit) for unit in units], show_progress=False)

    def frequency(self, term: str) -> int:
        """In how many units a term occurs."""
        return self._frequency[term]

    def rarity(self, term: str) -> float:
        """Inverse document frequency; a term that occurs nowhere weighs most."""
        frequency = self._frequency[term]
        return math.log(1 + (self.size - frequency + 0.5) / (frequency + 0.5))

    def scores(self, terms: Mapping[str, float]) -> Scores:
        """One score for each unit, in the order of the units."""
        total = np.zeros(self.size, dtype=np.float32)
        by_weight: defaultdict[float, list[str]] = defaultdict(list)
        for term, weight in terms.items():
            if self._frequency[term]:
                by_weight[weight].append(term)
        if self._index is not None:
            for weight, group in by_weight.items():
                total += weight * self._index.get_scores(group)
        return total
