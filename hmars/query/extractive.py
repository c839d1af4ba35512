"""Deterministic query agents: the `extractive` profile, the same hierarchy without a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hmars.lexical import Terms
from hmars.model import DocumentIndex, Group, MemoryCard, Page, Region, RegionalMemory
from hmars.query.agents import (
    Broadcast,
    Guidance,
    QueryAgents,
    RegionSelection,
    Scope,
    SelectedPage,
)
from hmars.query.quoting import QuotingAnswerer
from hmars.query.ranking import HINT, IndexShelf, LexicalIndex, Ranking, Scores
from hmars.tokens import Tokenizer

MOST_NAMES = 12
"""Names in one hint."""
LAST = 0.01
"""Most confidence for text that nothing speaks for, in a dialogue short enough to pass it on."""


class ExtractiveMemory:
    """Makes the agents of one question; keeps what it learnt of a scope for the next one."""

    def __init__(self) -> None:
        self._shelf = IndexShelf()

    def agents(self, scope: Scope, tokenizer: Tokenizer) -> QueryAgents:
        return extractive_agents(scope, tokenizer, self._shelf)

    def index(self, scope: Scope, tokenizer: Tokenizer) -> LexicalIndex:
        return self._shelf.of(scope, tokenizer)

    def forget(self, document: str) -> None:
        """Drop everything that holds text of this document."""
        self._shelf.forget(document)


def extractive_agents(
    scope: Scope, tokenizer: Tokenizer, shelf: IndexShelf | None = None
) -> QueryAgents:
    """The agents of one question; with a `shelf` the next question on the scope starts warm."""
    index = (shelf or IndexShelf()).of(scope, tokenizer)
    return QueryAgents(
        broadcaster=NameBroadcaster(index.terms),
        selector=RankingSelector(index),
        answerer=QuotingAnswerer(index, _dialogues(scope)),
    )


def _dialogues(scope: Scope) -> frozenset[str]:
    return frozenset(
        index.document.id for index in scope.indexes if index.document.kind == "dialogue"
    )


@dataclass(frozen=True)
class NameBroadcaster:
    """Reads the regional memory for names and topics that go with the words of the question."""

    terms: Terms

    async def broadcast(self, question: str, index: DocumentIndex, group: Group) -> Broadcast:
        asked = self.terms.content(question)
        memory = index.memories.get(group.index)
        if memory is None:
            return Broadcast(interpretation=" ".join(asked))
        number_of = dict(enumerate(group.regions, start=1))
        named: dict[int, dict[str, None]] = {number: {} for number in group.regions}
        for local, name in _related(memory, frozenset(asked), self.terms):
            if local in number_of:
                named[number_of[local]][name] = None
        return Broadcast(
            interpretation=" ".join(asked),
            hints={
                number: "; ".join(list(names)[:MOST_NAMES])
                for number, names in named.items()
                if names
            },
        )


def _related(
    memory: RegionalMemory, asked: frozenset[str], terms: Terms
) -> Iterator[tuple[int, str]]:
    """Names of each region that share a word with the question, cross-references first."""
    for reference in memory.crossrefs:
        if asked.intersection(terms.of(reference.subject)):
            for number in reference.regions:
                yield number, reference.subject
    for entry in memory.submap:
        for name in (*entry.entities, *entry.topics):
            if asked.intersection(terms.of(name)):
                yield entry.region, name


@dataclass(frozen=True)
class RankingSelector:
    """Selects pages by their best passage, ranked against every passage of the scope.

    A region in which no word of the question occurs abstains, and so does one that has nothing
    among the best passages of the scope. In a short dialogue whose best passage holds less than
    half of the question, words cannot tell what matters ("Which conditions have I set?"): there
    all that was said follows, the newest first, as far as the budget reaches.
    """

    index: LexicalIndex

    async def select(
        self, question: str, region: Region, card: MemoryCard | None, guidance: Guidance
    ) -> RegionSelection:
        ranking = self.index.rank(question)
        span = self.index.of_region.get((region.document, region.index))
        if span is None:
            return RegionSelection()
        taken = ranking.best[span.start : span.stop]
        if not ranking.matched[span.start : span.stop].any():
            taken = np.zeros(len(span), dtype=bool)
        scores = ranking.relative[span.start : span.stop]
        hinted = self._hinted(ranking, guidance.hint)
        if hinted is not None:
            scores = np.minimum(1.0, scores + HINT * hinted[span.start : span.stop] * scores)
        weights = np.where(taken, scores * ranking.strength, 0.0)
        if ranking.anything:
            order = np.arange(span.start, span.stop) + 1
            weights = np.where(taken, np.maximum(weights, LAST), LAST * order / len(ranking.best))
        found: dict[int, list[tuple[float, tuple[int, int]]]] = {}
        pages: dict[int, Page] = {}
        for at, weight, chosen in zip(span, weights.tolist(), taken.tolist(), strict=True):
            passage = self.index.passages[at]
            if chosen or (ranking.anything and passage.text.strip()):
                pages[passage.page.index] = passage.page
                found.setdefault(passage.page.index, []).append(
                    (weight, (passage.start, passage.end))
                )
        selected = [_selected(pages[number], parts) for number, parts in found.items()]
        selected.sort(key=lambda item: (-item.confidence, item.page.index))
        return RegionSelection(pages=tuple(selected))

    def _hinted(self, ranking: Ranking, hint: str) -> Scores | None:
        """Scores for the words of a hint that the question does not hold itself."""
        more = [term for term in self.index.terms.content(hint) if term not in ranking.content]
        if not more:
            return None
        key = " ".join(more)
        if key not in ranking.hinted:
            ranking.hinted[key] = self.index.score_hint(more)
        return ranking.hinted[key]


def _selected(page: Page, parts: list[tuple[float, tuple[int, int]]]) -> SelectedPage:
    parts.sort(key=lambda item: (-item[0], item[1]))
    weights = tuple(round(weight, 4) for weight, _ in parts)
    return SelectedPage(
        page=page,
        confidence=weights[0],
        passages=tuple(span for _, span in parts),
        weights=weights,
    )
