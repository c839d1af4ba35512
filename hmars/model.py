"""The nouns of hmars, shared by every other module.

Offsets are Unicode code points into the stored text of one document, half-open. Pages, regions
and groups are numbered from 1 in reading order. Inside prompts and inside cards, pages and
regions carry *local* numbers (from 1 within their region or group), so that an edit elsewhere in
the document changes neither a prompt nor a card.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Role = Literal["card", "region", "broadcast", "select", "answer", "lead", "read", "judge"]
DocumentKind = Literal["text", "dialogue"]


class Frozen(BaseModel):
    """A value that is stored or printed as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def is_blank(text: str) -> bool:
    """Nothing in it but white space and characters that have no width."""
    return not text.translate(_NO_WIDTH).strip()


_NO_WIDTH = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"))


# ---------------------------------------------------------------- source text


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the text that a human can name, from `start` to the next mark.

    `label` is shown to people ("p. 34", "§ Termination") and may move when the text is edited;
    `context` goes into prompts and must not depend on what stands elsewhere in the document.
    A whole mark (`kind="turn"`) is never split unless it alone is larger than a page.
    """

    start: int
    label: str
    context: str = ""
    kind: Literal["heading", "place", "turn"] = "heading"
    level: int = 1
    """Of a heading: 1 is the highest. Not used for other kinds."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """What a loader made of a file, a string or a list of turns: exact text and where it is from.

    `text` can be encoded as UTF-8 (no lone surrogates) and is never changed afterwards.
    `source` identifies the document inside its namespace (absolute path, or the caller's name).
    """

    text: str
    source: str
    title: str
    kind: DocumentKind = "text"
    marks: tuple[Mark, ...] = ()
    warnings: tuple[str, ...] = ()


# ---------------------------------------------------------------- hierarchy (S-HMARS 3.2, App. B)


@dataclass(frozen=True, slots=True)
class Page:
    """A grounded unit of evidence. All pages of a document, joined in order, are its text."""

    index: int
    start: int
    end: int
    tokens: int
    label: str
    context: str
    text: str


@dataclass(frozen=True)
class Region:
    """Consecutive pages owned by one sub-agent, at most `partition.region_tokens` tokens."""

    document: str
    index: int
    pages: tuple[Page, ...]

    @property
    def start(self) -> int:
        return self.pages[0].start

    @property
    def end(self) -> int:
        return self.pages[-1].end

    @property
    def tokens(self) -> int:
        return sum(page.tokens for page in self.pages)

    @cached_property
    def text(self) -> str:
        return "".join(page.text for page in self.pages)

    @cached_property
    def key(self) -> str:
        """Content address: equal for equal pages wherever they stand, in whatever document."""
        digest = hashlib.sha256()
        for page in self.pages:
            for part in (page.context, page.text):
                data = part.encode("utf-8")
                digest.update(len(data).to_bytes(8, "big"))
                digest.update(data)
        return digest.hexdigest()

    @property
    def blank(self) -> bool:
        """Nothing but white space: kept for tiling, never put before a model."""
        return is_blank(self.text)


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive regions under one mid-agent, at most `partition.group_regions` of them."""

    index: int
    regions: tuple[int, ...]


class PageGist(Frozen):
    """One line about one page of a card; `page` is local to the region."""

    page: int = Field(ge=1)
    gist: str


class MemoryCard(Frozen):
    """What a sub-agent knows of its region (S-HMARS eq. 2). Never used as evidence itself."""

    summary: str
    topics: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    page_index: tuple[PageGist, ...] = ()
    author: str
    """Who wrote it: model and prompt version, or the deterministic agent and its version."""
    degraded: str | None = None
    """Why a deterministic card stands in for the model's, if it does."""
    dropped: int = 0
    """Names, topics and page numbers the model gave that the region does not contain."""


CrossReferenceKind = Literal[
    "shared_entity", "related_event", "temporal_update", "repeated_constraint"
]


class CrossReference(Frozen):
    """A dependency between regions; `regions` are local to the group (eq. 4, crossref)."""

    kind: CrossReferenceKind
    subject: str
    regions: tuple[int, ...]
    note: str = ""


class SubmapEntry(Frozen):
    """The main topics and entities of one region of a group (eq. 4, submap)."""

    region: int = Field(ge=1)
    topics: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()


class RegionalMemory(Frozen):
    """What a mid-agent knows of its group of regions (S-HMARS eq. 3-4)."""

    summary: str
    submap: tuple[SubmapEntry, ...] = ()
    crossrefs: tuple[CrossReference, ...] = ()
    author: str
    degraded: str | None = None
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """One indexed text as the store lists it."""

    id: str
    namespace: str
    title: str
    source: str
    kind: DocumentKind
    content_hash: str
    characters: int
    tokens: int
    pages: int
    regions: int
    groups: int
    tokenizer: str
    """Identity of the tokenizer that counted its tokens."""
    updated: str
    """ISO 8601 time in UTC."""
    cards_missing: int = 0
    cards_degraded: int = 0
    warnings: tuple[str, ...] = ()
    version: int = 1
    """One more at each change of the text: what was cited from an earlier one may have moved."""

    @property
    def complete(self) -> bool:
        """Every region has a card that its own agent wrote."""
        return not self.cards_missing and not self.cards_degraded


@dataclass(frozen=True)
class DocumentIndex:
    """A document with its whole hierarchy, as queries read it."""

    document: Document
    regions: tuple[Region, ...]
    groups: tuple[Group, ...]
    cards: Mapping[int, MemoryCard] = field(default_factory=dict[int, MemoryCard])
    """By region index. A region whose card is not written yet is absent."""
    memories: Mapping[int, RegionalMemory] = field(default_factory=dict[int, RegionalMemory])
    """By group index."""

    @property
    def pages(self) -> Sequence[Page]:
        return [page for region in self.regions for page in region.pages]


# ---------------------------------------------------------------- cost and coverage


class Usage(Frozen):
    """What calls to models cost. Additive. `cached_tokens` is a part of `prompt_tokens`."""

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasks: int = 0
    """Replies that did not validate and were asked for again with the reason."""
    retries: int = 0
    """Requests sent again after a transport failure."""
    paths: dict[str, int] = Field(default_factory=dict[str, int])
    """How often a reply needed help, by kind: fenced, repaired, loop_cut, length_reask, ..."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            reasks=self.reasks + other.reasks,
            retries=self.retries + other.retries,
            paths={
                path: self.paths.get(path, 0) + other.paths.get(path, 0)
                for path in sorted({*self.paths, *other.paths})
            },
        )


class CallRecord(Frozen):
    """One finished question to a model, without its text: for history and bills."""

    ts: str
    """ISO 8601 time in UTC at which it ended."""
    role: Role
    model: str
    prompt: str
    """Prompt id and version, `select_pages@1`."""
    usage: Usage
    seconds: float
    outcome: str
    """`ok`, `cached`, `cancelled`, or the problem it failed with (`timeout`, `auth`, ...)."""


class Failure(Frozen):
    """One thing that went wrong while answering, with its place."""

    stage: Literal["broadcast", "select", "answer", "read", "lead", "verify"]
    document: str | None = None
    region: int | None = None
    group: int | None = None
    problem: str
    reason: str


class Ledger(Frozen):
    """Where every region of the scope ended for one question (promise 2).

    `regions == selected + abstained + failed + truncated + skipped`, always.
    """

    regions: int
    selected: int = 0
    abstained: int = 0
    failed: int = 0
    truncated: int = 0
    skipped: int = 0
    failures: tuple[Failure, ...] = ()
    read_whole: bool = False
    """The scope was small enough to be put before the answer model whole."""
    pages_left_out: int = 0
    """Selected pages that did not fit the answer prompt; the least confident go first."""
    unknown_pages: int = 0
    """Page numbers that models gave and that do not exist in their region."""
    rejected_quotes: int = 0
    """Citations whose quotation is not in the evidence; never shown."""
    regions_without_card: int = 0
    """Regions asked before their card was written (the index is unfinished)."""
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.failures and not self.failed and not self.truncated


# ---------------------------------------------------------------- answers


class Citation(Frozen):
    """A quotation that equals `text[start:end]` of the document (promise 3)."""

    number: int
    """The [number] in the answer's text that it stands behind; several may share one."""
    document: str
    page: int
    label: str
    start: int
    end: int
    quote: str


class EvidenceSpan(Frozen):
    """A stretch of one page that was put before the answer model."""

    document: str
    page: int
    start: int
    end: int
    tokens: int
    confidence: float


Verdict = Literal["unchecked", "match", "mismatch", "unclear"]


class Finding(Frozen):
    """What a reader found for a query of the lead (S-PARSER 3.1); `quote` is `text[start:end]`."""

    agent: int
    """The reader's number, from 1 in reading order of the scope."""
    query: str
    document: str
    region: int
    page: int
    start: int
    end: int
    quote: str
    answer: str
    confidence: float
    verdict: Verdict = "unchecked"
    """Whether the passage is about what the question means, as the verify round found."""


class Round(Frozen):
    """One turn of the lead: queries and what came back, an answer, or neither (`invalid`)."""

    queries: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    invalid: bool = False
    """The turn held no query that could be asked and no answer; it counts all the same."""
    note: str = ""
    """What was wrong with an invalid turn, or what came of an answer."""
    readers: int = 0
    """Readings asked for: queries times windows."""
    failed_readers: int = 0
    rejected_quotes: int = 0
    """Findings whose quotation is not in their window; never shown to the lead."""
    left_out: int = 0
    """Findings that did not fit `lead.max_observation_tokens`."""
    seconds: float = 0.0


class Seconds(Frozen):
    broadcast: float = 0.0
    select: float = 0.0
    answer: float = 0.0
    total: float = 0.0


class Answer(Frozen):
    """The result of one question: text, proof and cost. `ask --json` prints exactly this."""

    answer: str
    abstained: bool
    citations: tuple[Citation, ...] = ()
    evidence: tuple[EvidenceSpan, ...] = ()
    ledger: Ledger
    usage: dict[str, Usage] = Field(default_factory=dict[str, Usage])
    seconds: Seconds = Seconds()
    rounds: tuple[Round, ...] = ()
    """Of the lead; empty where no lead drove the question."""


class CardCounts(Frozen):
    written: int = 0
    reused: int = 0
    degraded: int = 0


class IndexSeconds(Frozen):
    load: float = 0.0
    partition: float = 0.0
    cards: float = 0.0
    regional: float = 0.0
    total: float = 0.0


class IndexReport(Frozen):
    """The result of indexing one document. `index --json` prints a list of these."""

    document: str
    title: str
    characters: int
    tokens: int
    pages: int
    regions: int
    groups: int
    cards: CardCounts
    regional: CardCounts = CardCounts()
    usage: dict[str, Usage] = Field(default_factory=dict[str, Usage])
    seconds: IndexSeconds = IndexSeconds()
    warnings: tuple[str, ...] = ()
    unchanged: bool = False


# ---------------------------------------------------------------- progress


@dataclass(frozen=True, slots=True)
class Progress:
    """A step of a long run, for whoever watches. `total` is 0 where it is not known."""

    stage: str
    done: int
    total: int
    note: str = ""
