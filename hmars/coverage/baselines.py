"""What to compare with that needs no model: plain BM25, and the whole text."""

from __future__ import annotations

from collections import Counter

from hmars.coverage.spans import Span
from hmars.lexical import Bm25, Terms, passages
from hmars.tokens import Tokenizer

PASSAGE_TOKENS = 256


class Bm25Baseline:
    """Passages of about 256 tokens in BM25's order, as many as fit the budget."""

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self._terms = Terms()
        self._spans = passages(text, PASSAGE_TOKENS, tokenizer.starts(text))
        self._tokens = [tokenizer.count(text[start:end]) for start, end in self._spans]
        self._bm25 = Bm25([self._terms.of(text[start:end]) for start, end in self._spans])

    def evidence(self, question: str, budget: int) -> tuple[list[Span], int]:
        """Spans, and their tokens together."""
        scores = self._bm25.scores(Counter(self._terms.of(question)))
        chosen: list[Span] = []
        used = 0
        for at in sorted(range(len(self._spans)), key=lambda number: -float(scores[number])):
            if used + self._tokens[at] > budget:
                break
            chosen.append(self._spans[at])
            used += self._tokens[at]
        return chosen, used
