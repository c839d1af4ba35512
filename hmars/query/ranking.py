"""Ranking every passage of a scope against a question, without a model.

A passage (about 256 tokens; in a dialogue a few whole turns) is scored by itself, by its neighbours
and by its page: the first finds a sentence, the others find a stretch of talk whose words are
spread over a page. What is talked about goes on without being named again, so in a dialogue
passages hand their score on to those around them, most where a question asks what was discussed.
The question is widened by what its best passages say (pseudo relevance feedback).
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hmars.lexical import STOP_WORDS, Bm25, Terms, passages, turn_headers, turn_passages
from hmars.model import DocumentIndex, Page
from hmars.query.agents import Scope
from hmars.query.asked import Asked, asked_of
from hmars.tokens import Tokenizer

PASSAGE_TOKENS = 256
TURN_TOKENS = 128
"""In a dialogue, turns share a passage up to this size; one over `PASSAGE_TOKENS` is cut."""
NEIGHBOUR, SECOND_NEIGHBOUR, PAGE = 0.3, 0.15, 0.5
"""Weight of the better neighbour, of the better next but one, and of the page of a passage."""
TALK, STRETCH, STRETCH_TOKENS = 0.5, 2.0, 1000.0
"""Weight of what the passages of a dialogue hand on to those around them, for any question and for
one that asks for a stretch of talk; after how many tokens a third of it is left."""
FEEDBACK, FEEDBACK_PASSAGES, FEEDBACK_TERMS = 0.3, 5, 15
ASSISTANT = 0.5
"""What a passage of an assistant counts, unless it is asked for: people mostly ask what was told to
it, and its answers are long and full of the same words."""
WEAK = 0.5
"""Below this share of the question in its best passage, all of a short dialogue may be evidence."""
SELECTED_TOKENS = 24_000
"""The best passages up to this many tokens are worth selecting; an evidence budget is smaller."""
HINT = 0.1
"""Weight of a region's hint against the question."""

Scores = NDArray[np.floating[Any]]
RegionKey = tuple[str, int]
_ASSISTANT = re.compile(r"\bassistant\b", re.IGNORECASE)
"""In the part of a header that names who speaks."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of one page; offsets are those of the document."""

    page: Page
    start: int
    end: int
    tokens: int
    context: str
    """What stands over it on its page; empty in a dialogue, where turns bring their own headers
    (repeating them over the rest of a long turn was measured, and ranks worse)."""
    assistant: bool = False
    """It begins in a turn of an assistant."""

    @property
    def text(self) -> str:
        return self.page.text[self.start - self.page.start : self.end - self.page.start]


class LexicalIndex:
    """All pages and passages of a scope with their BM25 statistics. Build once, ask often."""

    def __init__(self, scope: Scope, tokenizer: Tokenizer) -> None:
        self.terms = Terms()
        self.passages: list[Passage] = []
        self.of_region: dict[RegionKey, range] = {}
        page_units: list[list[str]] = []
        passage_units: list[list[str]] = []
        page_of: list[int] = []
        breaks: list[int] = []
        spoken: list[bool] = []
        for index in scope.indexes:
            named = self.terms.of(index.document.title) if len(scope.indexes) > 1 else []
            dialogue = index.document.kind == "dialogue"
            breaks.append(len(self.passages))
            for region in index.regions:
                first = len(self.passages)
                for page in region.pages:
                    around = [*named, *self.terms.of(page.context)]
                    found = _passages(page, tokenizer, dialogue)
                    spoken.extend([dialogue] * len(found))
                    units = [self.terms.of(passage.text) for passage in found]
                    page_of.extend([len(page_units)] * len(found))
                    page_units.append([*around, *(term for unit in units for term in unit)])
                    passage_units.extend(
                        [*named, *self.terms.of(item.context), *unit]
                        for item, unit in zip(found, units, strict=True)
                    )
                    self.passages.extend(found)
                self.of_region[index.document.id, region.index] = range(first, len(self.passages))
        self._page_of = np.array(page_of, dtype=np.intp)
        self._breaks = np.array(breaks, dtype=np.intp)
        self._spoken = np.array(spoken, dtype=bool)
        self._assistant = np.array([item.assistant for item in self.passages], dtype=bool)
        self._pages = Bm25(page_units)
        self._units = Bm25(passage_units)
        self._sizes = np.array([passage.tokens for passage in self.passages], dtype=np.float64)
        self._last: Ranking | None = None

    def rarity(self, term: str) -> float:
        """How much a term of a question weighs; one that occurs nowhere weighs most."""
        return self._units.rarity(term)

    def known(self, term: str) -> bool:
        return self._units.frequency(term) > 0

    def rank(self, question: str) -> Ranking:
        """Scores of all passages for a question; kept until the next question."""
        if self._last is None or self._last.question != question:
            self._last = self._rank(question)
        return self._last

    def _rank(self, question: str) -> Ranking:
        asked = asked_of(question, self.terms)
        content, weights = asked.content, asked.weights
        first = self.score(weights, stretch=asked.stretch)
        matched = self._units.scores(weights) + self._pages.scores(weights)[self._page_of]
        widened = self._widened(weights, first)
        total = self.score(widened, stretch=asked.stretch)
        if not asked.of_assistant:
            total = np.where(self._assistant, ASSISTANT * total, total)
        top = float(total.max(initial=0.0))
        relative = total / top if top > 0 else total
        strength = self._coverage(asked, int(relative.argmax())) if top > 0 else 0.0
        short = self._spoken.all() and self._sizes.sum() <= SELECTED_TOKENS
        return Ranking(
            question=question,
            content=content,
            relative=relative,
            matched=matched > 0,
            best=self._best(relative),
            strength=strength,
            widened=tuple(widened),
            anything=bool(content and short and strength < WEAK),
        )

    def _best(self, scores: Scores) -> NDArray[np.bool_]:
        """The passages with a score, best first, up to `SELECTED_TOKENS`."""
        best = np.zeros(len(scores), dtype=bool)
        order = np.argsort(-scores, kind="stable")
        sizes = np.array([self.passages[at].tokens for at in order], dtype=np.int64)
        best[order[np.cumsum(sizes) - sizes < SELECTED_TOKENS]] = True
        return best & (scores > 0)

    def score(self, terms: Mapping[str, float], *, stretch: bool = False) -> Scores:
        """Passage, neighbours and page together, each against the best of its kind."""
        own = _normed(self._units.scores(terms))
        pages = _normed(self._pages.scores(terms))
        near = self._neighbour(own, 1)
        far = self._neighbour(own, 2)
        total = own + NEIGHBOUR * near + SECOND_NEIGHBOUR * far + PAGE * pages[self._page_of]
        if self._spoken.any():
            weight = STRETCH if stretch else TALK
            total = total + weight * np.where(self._spoken, _normed(self._around(own)), 0)
        return total

    def _around(self, scores: Scores) -> Scores:
        """What each passage has of its own and gets from both sides, less by distance."""
        keep: list[float] = np.exp(-self._sizes / STRETCH_TOKENS).tolist()
        values: list[float] = scores.tolist()
        total = np.array(values)
        edges = [*self._breaks.tolist(), len(values)]
        for first, last in pairwise(edges):
            for way in (range(first, last), range(last - 1, first - 1, -1)):
                carried = 0.0
                for at in way:
                    total[at] += carried
                    carried = (carried + values[at]) * keep[at]
        return total

    def score_hint(self, terms: Sequence[str]) -> Scores:
        """How well passages fit the words of a hint, 0..1."""
        return _normed(self._units.scores(dict.fromkeys(terms, 1.0)))

    def _neighbour(self, scores: Scores, distance: int) -> Scores:
        """The better score of the two passages `distance` away, within the document."""
        best = np.zeros_like(scores)
        if len(scores) > distance:
            document = np.searchsorted(self._breaks, np.arange(len(scores)), side="right")
            same = document[distance:] == document[:-distance]
            best[distance:] = np.where(same, scores[:-distance], 0)
            ahead = np.where(same, scores[distance:], 0)
            best[:-distance] = np.maximum(best[:-distance], ahead)
        return best

    def _widened(self, asked: Mapping[str, float], scores: Scores) -> dict[str, float]:
        """The question's terms and, with less weight, the telling ones of the best passages."""
        weights: defaultdict[str, float] = defaultdict(float)
        best: list[int] = np.argsort(-scores, kind="stable")[:FEEDBACK_PASSAGES].tolist()
        for at in best:
            if scores[at] <= 0:
                break
            found = Counter(self.terms.of(self.passages[at].text))
            length = found.total()
            for term, count in found.items():
                if term not in STOP_WORDS and (len(term) > 2 or not term.isascii()):
                    weights[term] += float(scores[at]) * count / length * self.rarity(term)
        common = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:FEEDBACK_TERMS]
        widened = dict(asked)
        for term, weight in common:
            # Steps of a tenth: terms of one weight are scored in one go.
            extra = round(FEEDBACK * weight / common[0][1], 1)
            if extra > 0:
                widened[term] = widened.get(term, 0.0) + extra
        return widened

    def _coverage(self, asked: Asked, at: int) -> float:
        """The share of the question, by rarity, that stands in one passage and its page's name."""
        passage = self.passages[at]
        found = {*self.terms.of(passage.text), *self.terms.of(passage.context)}
        weights = {term: weight * self.rarity(term) for term, weight in asked.weights.items()}
        whole = sum(weights.values())
        return sum(weights[term] for term in weights if term in found) / whole if whole else 0.0


@dataclass(frozen=True)
class Ranking:
    """What one question finds."""

    question: str
    content: Sequence[str]
    relative: Scores
    """By passage, against the best passage of the scope."""
    matched: NDArray[np.bool_]
    """Whether the passage or its page holds any word of the question."""
    best: NDArray[np.bool_]
    """Whether the passage is among those worth selecting."""
    strength: float
    """How much of the question the best passage covers, 0..1."""
    widened: tuple[str, ...]
    anything: bool = False
    """The words of the question say too little where the answer stands in a short dialogue."""
    hinted: dict[str, Scores] = field(default_factory=dict[str, Scores])


def _passages(page: Page, tokenizer: Tokenizer, dialogue: bool) -> list[Passage]:
    starts = tokenizer.starts(page.text)
    if dialogue:
        spans = turn_passages(page.text, TURN_TOKENS, PASSAGE_TOKENS, starts, offset=page.start)
    else:
        spans = passages(page.text, PASSAGE_TOKENS, starts, offset=page.start)
    edges = np.searchsorted(starts, [end - page.start for _, end in spans]).tolist()
    headers = turn_headers(page.text) if dialogue else []
    found: list[Passage] = []
    for (start, end), before, after in zip(spans, [0, *edges], edges, strict=False):
        speaker = page.context
        for at, header in headers:
            if page.start + at <= start:
                speaker = header
        assistant = dialogue and bool(_ASSISTANT.search(speaker.partition("|")[0]))
        context = "" if dialogue else page.context
        found.append(Passage(page, start, end, after - before, context, assistant))
    return found


def _normed(scores: Scores) -> Scores:
    top = float(scores.max(initial=0.0))
    return scores / top if top > 0 else scores


class IndexShelf:
    """Keeps the indexes of the scopes asked last: the next question finds its own ready."""

    def __init__(self, room: int = 4) -> None:
        self._room = room
        self._shelf: OrderedDict[tuple[tuple[str, ...], ...], LexicalIndex] = OrderedDict()

    def of(self, scope: Scope, tokenizer: Tokenizer) -> LexicalIndex:
        key = tuple(_identity(index, tokenizer) for index in scope.indexes)
        if key not in self._shelf:
            self._shelf[key] = LexicalIndex(scope, tokenizer)
        self._shelf.move_to_end(key)
        while len(self._shelf) > self._room:
            self._shelf.popitem(last=False)
        return self._shelf[key]

    def forget(self, document: str) -> None:
        """Drop every index that holds text of this document."""
        for key in [key for key in self._shelf if any(part[0] == document for part in key)]:
            del self._shelf[key]


def _identity(index: DocumentIndex, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Of a document's pages and names: a turn that gains a date changes no text."""
    document = index.document
    return (
        document.id,
        document.content_hash,
        str(document.version),
        document.title,
        tokenizer.identity,
        *(region.key for region in index.regions),
    )
