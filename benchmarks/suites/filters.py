"""The filter of S-HMARS App. A: many gold units, of which a plain ranker finds at most half."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import bm25s
import numpy as np

from benchmarks.suites.base import Bundle, Case
from hmars.coverage import Span

LEAST_UNITS = 4
MOST_RECALL = 0.5
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+", re.UNICODE)


def plain_terms(text: str) -> list[str]:
    """Lower-case words, unstemmed; characters and pairs of them where words have no spaces."""
    terms = _WORD.findall(text.lower())
    pairs = [
        left + right
        for left, right in itertools.pairwise(terms)
        if len(left) == len(right) == 1 and left > "\u3000" and right > "\u3000"
    ]
    return terms + pairs


class UnitRanker:
    """Plain BM25 over the units of one document."""

    def __init__(self, text: str, units: Sequence[Span]) -> None:
        self._count = len(units)
        self._index = bm25s.BM25()
        self._index.index(
            [plain_terms(text[start:end]) or ["\u0000"] for start, end in units],
            show_progress=False,
        )

    def recall_at_gold(self, case: Case) -> float:
        """Share of the gold units among the first K, where K is their number."""
        terms = [term for term in plain_terms(case.question) if term in self._index.vocab_dict]
        scores = self._index.get_scores(terms) if terms else np.zeros(self._count)
        first = np.argsort(-scores, kind="stable")[: len(case.units)]
        return len(case.units & set(first.tolist())) / len(case.units)


def broad(bundle: Bundle) -> Bundle:
    """The bundle with only those questions that pass the filter."""
    candidates = [case for case in bundle.cases if len(case.units) >= LEAST_UNITS]
    if not candidates:
        return Bundle(bundle.document, (), bundle.units)
    ranker = UnitRanker(bundle.document.text, bundle.units)
    kept = [case for case in candidates if ranker.recall_at_gold(case) <= MOST_RECALL]
    return Bundle(bundle.document, tuple(kept), bundle.units)
