"""A reader without a model: BM25 over the sentences of the scope, for the `extractive` profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hmars.lexical import Bm25, Terms, names, sentences
from hmars.query.lead.agents import Claim, Reading, Window

ENOUGH, ENOUGH_WITH_NAME = 0.5, 0.3
"""Share of the query, by rarity, that a sentence must hold; less where the query names somebody or
something and the sentence holds one of the names whole, which it then must. A word that occurs
nowhere weighs most, so a query for what the text does not speak of finds nothing."""
CLOSE = 0.7
"""How close to the best sentence of its window another must score to be reported too."""
MOST = 2
QUERIES_KEPT = 16
"""Whose scores are kept: more than one question asks."""


@dataclass
class SentenceIndex:
    """Every sentence of all windows of a scope, scored together so that scores compare."""

    windows: Sequence[Window]
    terms: Terms
    _spans: dict[int, tuple[int, list[tuple[int, int]]]] = field(init=False)
    _units: list[frozenset[str]] = field(init=False)
    _bm25: Bm25 = field(init=False)
    _scores: dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]] = field(init=False)

    def __post_init__(self) -> None:
        self._spans, self._scores = {}, {}
        units: list[list[str]] = []
        for window in self.windows:
            spans = sentences(window.text)
            self._spans[window.agent] = (len(units), spans)
            units.extend(self.terms.of(window.text[start:end]) for start, end in spans)
        self._units = [frozenset(unit) for unit in units]
        self._bm25 = Bm25(units)

    def best(self, query: str, window: Window) -> list[tuple[str, float]]:
        """Sentences of the window that cover enough of the query, with their coverage."""
        weights = {term: self._bm25.rarity(term) for term in self.terms.content(query)}
        whole = sum(weights.values())
        first, spans = self._spans[window.agent]
        if not whole or not spans:
            return []
        named = [frozenset(self.terms.of(name)) for name in names(query).proper]
        scores = self._scored(query, weights)[first : first + len(spans)]
        top = float(scores.max())
        found: list[tuple[str, float]] = []
        order: list[int] = np.argsort(-scores, kind="stable").tolist()
        for at in order:
            if scores[at] <= 0 or scores[at] < CLOSE * top or len(found) == MOST:
                break
            unit = self._units[first + at]
            if named and not any(name <= unit for name in named):
                continue
            held = sum(weight for term, weight in weights.items() if term in unit) / whole
            if held >= (ENOUGH_WITH_NAME if named else ENOUGH):
                start, end = spans[at]
                found.append((window.text[start:end].strip(), held))
        return found

    def coverage(self, question: str, quotes: Sequence[str]) -> float:
        """The share of a question, by rarity, that some quotations hold together."""
        weights = {term: self._bm25.rarity(term) for term in self.terms.content(question)}
        held = {term for quote in quotes for term in self.terms.of(quote)}
        whole = sum(weights.values())
        return sum(weights[term] for term in weights if term in held) / whole if whole else 0.0

    def _scored(
        self, query: str, weights: dict[str, float]
    ) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        if query not in self._scores:
            if len(self._scores) == QUERIES_KEPT:
                del self._scores[next(iter(self._scores))]
            self._scores[query] = self._bm25.scores(dict.fromkeys(weights, 1.0))
        return self._scores[query]


@dataclass(frozen=True)
class SentenceReader:
    """Quotes the sentences that hold most of the query; its answer is the sentence itself."""

    index: SentenceIndex

    async def read(self, reading: Reading, window: Window) -> Sequence[Claim]:
        return [
            Claim(quote, " ".join(quote.split()), round(held, 4))
            for quote, held in self.index.best(reading.query, window)
        ]
