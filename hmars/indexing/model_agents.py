"""Model-driven agents of the indexing phase: cards by a small model, regional memories by a larger.

What a model writes is untrusted (promise 7): names that the region does not contain are dropped
and counted, page and region numbers are checked, texts are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field, WithJsonSchema

from hmars.grounding import mentions
from hmars.llm.numbers import local_number
from hmars.model import (
    CrossReference,
    CrossReferenceKind,
    MemoryCard,
    PageGist,
    Region,
    RegionalMemory,
    SubmapEntry,
)
from hmars.prompts import (
    PromptedModel,
    boundary,
    one_line,
    render_card,
    render_pages,
)

Number = Annotated[Any, WithJsonSchema({"type": "integer"})]

MAX_TOPICS = 12
MAX_ENTITIES = 40
MAX_CROSSREFS = 40
MAX_SUMMARY = 2_000
MAX_LINE = 300
CARD_TOKENS = 450
"""A card's usual length, for estimates."""
MEMORY_TOKENS = 900
"""A regional memory's usual length, for estimates."""


class GistReply(BaseModel):
    page: Number
    gist: str


class CardReply(BaseModel):
    """What the card model must send."""

    summary: str = Field(min_length=1)
    topics: list[str]
    entities: list[str]
    page_index: list[GistReply]


class SubmapReply(BaseModel):
    region: Number
    topics: list[str]
    entities: list[str]


class CrossReferenceReply(BaseModel):
    kind: CrossReferenceKind
    subject: str
    regions: list[Number]
    note: str


class RegionalReply(BaseModel):
    """What the regional model must send."""

    summary: str = Field(min_length=1)
    submap: list[SubmapReply]
    crossrefs: list[CrossReferenceReply]


@dataclass(frozen=True)
class ModelCardAgent:
    """Writes a region's card with a model (S-HMARS eq. 2)."""

    model: PromptedModel
    author: str

    async def write_card(self, region: Region) -> MemoryCard:
        reply = await self.model.ask(
            CardReply,
            affinity=region.key,
            documents=(region.document,),
            pages=render_pages(region.pages),
        )
        return checked_card(reply, region, self.author)


def checked_card(reply: CardReply, region: Region, author: str) -> MemoryCard:
    """The card with everything the region does not contain taken out and counted."""
    names, missing = _split(reply.entities, lambda name: mentions(region.text, name))
    gists: dict[int, str] = {}
    unknown = 0
    for entry in reply.page_index:
        number = local_number(entry.page, len(region.pages))
        if number is None:
            unknown += 1
        else:
            gists.setdefault(number, one_line(entry.gist, MAX_LINE))
    return MemoryCard(
        summary=_bounded(reply.summary),
        topics=_lines(reply.topics, MAX_TOPICS),
        entities=_lines(names, MAX_ENTITIES),
        page_index=tuple(PageGist(page=page, gist=gists[page]) for page in sorted(gists)),
        author=author,
        dropped=len(missing) + unknown,
    )


@dataclass(frozen=True)
class ModelRegionalAgent:
    """Joins cards into a regional memory with a model (S-HMARS eq. 3-4)."""

    model: PromptedModel
    author: str
    documents: tuple[str, ...] = ()

    async def write_memory(
        self, cards: Sequence[MemoryCard], candidates: Sequence[CrossReference]
    ) -> RegionalMemory:
        rendered = [render_card(card) for card in cards]
        mark = boundary(rendered)
        blocks = "\n".join(
            f"<card {number} {mark}>\n{text}\n</card {number} {mark}>"
            for number, text in enumerate(rendered, start=1)
        )
        reply = await self.model.ask(
            RegionalReply,
            affinity=mark,
            documents=self.documents,
            cards=blocks,
            candidates=candidate_lines(candidates),
        )
        return checked_memory(reply, cards, self.author)


def checked_memory(
    reply: RegionalReply, cards: Sequence[MemoryCard], author: str
) -> RegionalMemory:
    """The regional memory with unknown regions and names that no card holds taken out."""
    known = "\n".join(render_card(card) for card in cards)
    dropped = 0
    submap: dict[int, SubmapEntry] = {}
    for entry in reply.submap:
        number = local_number(entry.region, len(cards))
        if number is None or number in submap:
            dropped += 1
            continue
        names, missing = _split(entry.entities, lambda name: mentions(known, name))
        dropped += len(missing)
        submap[number] = SubmapEntry(
            region=number,
            topics=_lines(entry.topics, MAX_TOPICS),
            entities=_lines(names, MAX_ENTITIES),
        )
    crossrefs: list[CrossReference] = []
    for reference in reply.crossrefs[:MAX_CROSSREFS]:
        numbers = {local_number(region, len(cards)) for region in reference.regions}
        regions = tuple(sorted(number for number in numbers if number is not None))
        if len(regions) < 2:
            dropped += 1
            continue
        crossrefs.append(
            CrossReference(
                kind=reference.kind,
                subject=one_line(reference.subject, MAX_LINE),
                regions=regions,
                note=one_line(reference.note, MAX_LINE),
            )
        )
    return RegionalMemory(
        summary=_bounded(reply.summary),
        submap=tuple(submap[number] for number in sorted(submap)),
        crossrefs=tuple(crossrefs),
        author=author,
        dropped=dropped,
    )


def candidate_lines(candidates: Sequence[CrossReference]) -> str:
    if not candidates:
        return "(none)"
    return "\n".join(
        f"- {reference.kind}: {one_line(reference.subject)} in regions "
        f"{', '.join(map(str, reference.regions))}"
        for reference in candidates
    )


def _split(items: Iterable[str], keep: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    kept: list[str] = []
    lost: list[str] = []
    for item in items:
        (kept if keep(item) else lost).append(item)
    return kept, lost


def _lines(items: Iterable[str], limit: int) -> tuple[str, ...]:
    """Distinct short lines, in order."""
    seen: dict[str, str] = {}
    for item in items:
        line = one_line(item, MAX_LINE)
        if line:
            seen.setdefault(line.casefold(), line)
    return tuple(list(seen.values())[:limit])


def _bounded(text: str) -> str:
    text = text.strip()
    return text if len(text) <= MAX_SUMMARY else text[: MAX_SUMMARY - 1] + "…"
