"""What a query asks of its agents (S-HMARS 3.2, query phase), and what they give back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hmars.model import DocumentIndex, Group, MemoryCard, Page, Region

OnText = Callable[[str], None]


@dataclass(frozen=True)
class Scope:
    """The documents one question is asked of."""

    indexes: tuple[DocumentIndex, ...]
    notes: tuple[str, ...] = ()
    """What the ledger is to say of the scope itself, such as what was left out of it."""
    namers: Mapping[str, Callable[[int, int], str]] = field(
        default_factory=dict[str, Callable[[int, int], str]]
    )
    """By document: what a stretch of it is called, where that is finer than its page's label."""

    def regions(self) -> Iterator[tuple[DocumentIndex, Region]]:
        for index in self.indexes:
            for region in index.regions:
                yield index, region

    def groups(self) -> Iterator[tuple[DocumentIndex, Group]]:
        for index in self.indexes:
            for group in index.groups:
                yield index, group

    @property
    def tokens(self) -> int:
        return sum(index.document.tokens for index in self.indexes)


@dataclass(frozen=True, slots=True)
class Broadcast:
    """A mid-agent's reading of the question (eq. 5). `hints` is by region index of the document;
    a region without one gets the interpretation as its hint: none is left out."""

    interpretation: str
    hints: Mapping[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True, slots=True)
class Guidance:
    """What one region is told beside the question."""

    interpretation: str
    hint: str


@dataclass(frozen=True, slots=True)
class SelectedPage:
    """A page that may hold evidence.

    `confidence` lies in 0..1 and is comparable across the regions of one question. `passages` are
    the document offsets of the stretches inside the page that matter, best first; empty where the
    agent judged the page as a whole.
    """

    page: Page
    confidence: float
    passages: tuple[tuple[int, int], ...] = ()
    rationale: str = ""
    weights: tuple[float, ...] = ()
    """The confidence of each passage, in the order of `passages`; empty where it was not judged."""


@dataclass(frozen=True, slots=True)
class RegionSelection:
    """What one region answered (eq. 6). No pages is an abstention, never an error."""

    pages: tuple[SelectedPage, ...] = ()
    unknown_pages: tuple[str, ...] = ()
    """Warnings for page numbers that do not exist here: "page 17 not in 1..16"."""
    floored: int = 0
    """Pages whose score rests on an incomplete list of alternatives (pointwise selection)."""


@dataclass(frozen=True, slots=True)
class EvidenceBlock:
    """A stretch of text put before the answer model under one header; numbered from 1."""

    number: int
    document: str
    title: str
    label: str
    context: str
    pages: tuple[int, ...]
    start: int
    end: int
    text: str
    tokens: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation a draft gives for its answer, not yet verified."""

    block: int
    text: str


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer before its quotations are verified. `[n]` in `answer` refers to block n."""

    answer: str
    abstained: bool
    quotes: tuple[Quote, ...] = ()


class Broadcaster(Protocol):
    async def broadcast(self, question: str, index: DocumentIndex, group: Group) -> Broadcast: ...


class Selector(Protocol):
    async def select(
        self, question: str, region: Region, card: MemoryCard | None, guidance: Guidance
    ) -> RegionSelection: ...


Selections = Mapping[tuple[str, int], RegionSelection]
"""By document and region."""
Cut = Callable[[Selections], Selections]
"""Selections to what of them counts; no region is left out."""
Divide = Callable[[str, Sequence[tuple[str, SelectedPage]]], Sequence[SelectedPage]]
"""A question and pages of documents that a selector judged whole, to the same with passages."""


class Answerer(Protocol):
    async def answer(
        self, question: str, evidence: Sequence[EvidenceBlock], on_text: OnText | None = None
    ) -> Draft: ...


@dataclass(frozen=True, slots=True)
class QueryAgents:
    """The agents of one question. Made for a scope, so that they may look at all of it first."""

    broadcaster: Broadcaster
    selector: Selector
    answerer: Answerer
    cut: Cut | None = None
    """Looks at what all regions selected and says what of it counts; None: all of it."""
    divide: Divide | None = None
    """Asked where the selected pages do not fit the budget; None: the selector gave passages."""
