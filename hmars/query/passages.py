"""Passages for pages that a model judged as a whole.

Where the selected pages do not fit the evidence budget, evidence is cut to passages (see
`evidence`). A model says how a page compares with other pages and nothing about what stands where
on it, so the words of the question tell the passages of a page apart.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hmars.query.agents import SelectedPage
from hmars.query.ranking import LexicalIndex

WORDS = 1.0
"""Log-odds between the best passage of the scope and one without a word of the question: enough to
decide between pages that a small model can hardly tell apart, not against one that is sure."""
CERTAIN = 0.99
"""A model that says 1 is taken to mean this: words still tell the passages of its page apart."""

Scored = list[tuple[float, tuple[int, int]]]


@dataclass(frozen=True)
class LexicalDivider:
    """Gives pages their passages, weighted by the page's confidence and the question's words."""

    index: Callable[[], LexicalIndex]
    """Called once pages have to be divided: an index of a large scope takes a while."""

    def __call__(
        self, question: str, pages: Sequence[tuple[str, SelectedPage]]
    ) -> list[SelectedPage]:
        """The selected pages of `pages` (with the ids of their documents), in the same order."""
        index = self.index()
        words = index.rank(question).relative
        scored: defaultdict[tuple[str, int], Scored] = defaultdict(list)
        for (document, _), places in index.of_region.items():
            for at in places:
                passage = index.passages[at]
                scored[document, passage.page.index].append(
                    (float(words[at]), (passage.start, passage.end))
                )
        return [_weighed(choice, scored[document, choice.page.index]) for document, choice in pages]


def _weighed(choice: SelectedPage, scored: Scored) -> SelectedPage:
    ranked = sorted(scored, key=lambda item: (-item[0], item[1]))
    return replace(
        choice,
        passages=tuple(span for _, span in ranked),
        weights=tuple(shifted(choice.confidence, WORDS * (words - 1.0)) for words, _ in ranked),
    )


def shifted(confidence: float, log_odds: float) -> float:
    """A confidence moved by log-odds; it stays between 0 and 1."""
    sure = min(max(confidence, 1.0 - CERTAIN), CERTAIN)
    return 1.0 / (1.0 + (1.0 - sure) / sure * math.exp(-log_odds))
