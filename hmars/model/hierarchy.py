"""Source text and the hierarchy over it: pages, regions, groups, cards (S-HMARS 3.2, App. B)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from pydantic import Field

from hmars.model.base import DocumentKind, Frozen, is_blank

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
