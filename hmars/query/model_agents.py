"""Model-driven agents of the query phase: broadcast, listwise selection, answer.

Every prompt begins with what does not depend on the question (promise 6): instructions, then the
region's pages and card or the group's memory, then the question and what belongs to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from pydantic import BaseModel, Field, WithJsonSchema, field_validator

from hmars.llm.numbers import local_number
from hmars.model import CrossReference, DocumentIndex, Group, MemoryCard, Region
from hmars.prompts import (
    PromptedModel,
    boundary,
    defuse,
    enclose,
    one_line,
    render_card,
    render_memory,
    render_pages,
)
from hmars.query.agents import (
    Broadcast,
    Draft,
    EvidenceBlock,
    Guidance,
    OnText,
    Quote,
    RegionSelection,
    SelectedPage,
)
from hmars.query.streaming import AnswerStream

Number = Annotated[Any, WithJsonSchema({"type": "integer"})]
Share = Annotated[Any, WithJsonSchema({"type": "number"})]

DEFAULT_CONFIDENCE = 0.5
MAX_LINKS = 20


class HintReply(BaseModel):
    region: Number
    hint: str


class BroadcastReply(BaseModel):
    """What the broadcasting model must send."""

    interpretation: str
    hints: list[HintReply]


class PageReply(BaseModel):
    page: Number
    confidence: Share = DEFAULT_CONFIDENCE
    why: str = ""


class SelectReply(BaseModel):
    """What the selecting model must send; a bare list of numbers is understood as well."""

    pages: list[PageReply]

    @field_validator("pages", mode="before")
    @classmethod
    def _bare_numbers(cls, value: Any) -> Any:  # noqa: ANN401 - it is what a model sent
        if not isinstance(value, list):
            return value
        items = cast(list[Any], value)
        return [item if isinstance(item, dict) else {"page": item} for item in items]


class CitationReply(BaseModel):
    evidence: Number
    quote: str


class AnswerReply(BaseModel):
    """What the answering model must send."""

    answerable: bool
    answer: str = Field(min_length=1)
    citations: list[CitationReply]


@dataclass(frozen=True)
class ModelBroadcaster:
    """A mid-agent at query time (S-HMARS eq. 5)."""

    model: PromptedModel
    links: Mapping[tuple[str, int], Sequence[CrossReference]] = field(
        default_factory=dict[tuple[str, int], Sequence[CrossReference]]
    )
    """Cross-references to regions of other groups, by document and group."""

    async def broadcast(self, question: str, index: DocumentIndex, group: Group) -> Broadcast:
        memory = index.memories.get(group.index)
        if memory is None:
            return Broadcast(interpretation=question)
        rendered = enclose("memory", render_memory(memory))
        reply = await self.model.ask(
            BroadcastReply,
            affinity=boundary([rendered]),
            documents=(index.document.id,),
            memory=rendered,
            links=_link_lines(self.links.get((index.document.id, group.index), ())),
            question=question,
        )
        hints: dict[int, str] = {}
        for entry in reply.hints:
            number = local_number(entry.region, len(group.regions))
            if number is not None and entry.hint.strip():
                hints[group.regions[number - 1]] = one_line(entry.hint, 500)
        return Broadcast(
            interpretation=one_line(reply.interpretation, 1_000) or question, hints=hints
        )


@dataclass(frozen=True)
class ListwiseSelector:
    """A sub-agent at query time: one call a region names its pages (S-HMARS eq. 6)."""

    model: PromptedModel

    async def select(
        self, question: str, region: Region, card: MemoryCard | None, guidance: Guidance
    ) -> RegionSelection:
        reply = await self.model.ask(
            SelectReply,
            affinity=region.key,
            documents=(region.document,),
            pages=render_pages(region.pages),
            card=enclose("card", render_card(card) if card else "(not written yet)"),
            question=question,
            interpretation=one_line(guidance.interpretation, 1_000),
            hint=one_line(guidance.hint, 500),
        )
        return checked_selection(reply, region)


def checked_selection(reply: SelectReply, region: Region) -> RegionSelection:
    """Distinct pages that exist, best confidence of each; the other numbers as warnings."""
    best: dict[int, PageReply] = {}
    unknown: list[str] = []
    last = len(region.pages)
    for entry in reply.pages:
        number = local_number(entry.page, last)
        if number is None:
            unknown.append(f"region {region.index}: page {entry.page} not in 1..{last}")
        elif number not in best or _share(best[number].confidence) < _share(entry.confidence):
            best[number] = entry
    pages = tuple(
        SelectedPage(
            page=region.pages[number - 1],
            confidence=_share(best[number].confidence),
            rationale=one_line(best[number].why),
        )
        for number in sorted(best)
    )
    return RegionSelection(pages=pages, unknown_pages=tuple(unknown))


@dataclass(frozen=True)
class ModelAnswerer:
    """The base agent: answers over grounded evidence (S-HMARS eq. 7)."""

    model: PromptedModel

    async def answer(
        self, question: str, evidence: Sequence[EvidenceBlock], on_text: OnText | None = None
    ) -> Draft:
        reply = await self.model.ask(
            AnswerReply,
            documents=tuple(dict.fromkeys(block.document for block in evidence)),
            on_text=AnswerStream(on_text).feed if on_text else None,
            evidence=render_evidence(evidence),
            question=question,
        )
        quotes: list[Quote] = []
        for citation in reply.citations:
            number = local_number(citation.evidence, len(evidence))
            quotes.append(Quote(block=number or 0, text=citation.quote))
        return Draft(
            answer=reply.answer.strip(),
            abstained=not reply.answerable,
            quotes=tuple(quotes) if reply.answerable else (),
        )


def render_evidence(evidence: Sequence[EvidenceBlock]) -> str:
    """Evidence blocks under numbered headers that say where each is from."""
    mark = boundary(block.text for block in evidence)
    return "\n".join(
        f"<evidence {block.number} {mark}> from: {one_line(block.title)}, {one_line(block.label)}"
        f"{_context(block)}\n{defuse(block.text)}\n</evidence {block.number} {mark}>"
        for block in evidence
    )


def _context(block: EvidenceBlock) -> str:
    extra = one_line(block.context)
    return f" ({extra})" if extra and extra not in one_line(block.label) else ""


def _link_lines(links: Sequence[CrossReference]) -> str:
    if not links:
        return "(none)"
    return "\n".join(
        f"- {link.kind}: {one_line(link.subject)}"
        + (f", {one_line(link.note)}" if link.note else "")
        for link in links[:MAX_LINKS]
    )


def _share(value: Any) -> float:  # noqa: ANN401 - it is what a model sent
    """A confidence as 0..1; percentages and words are brought to it or to the default."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return DEFAULT_CONFIDENCE
    if number != number:
        return DEFAULT_CONFIDENCE
    if 1.0 < number <= 100.0:
        number /= 100.0
    return min(1.0, max(0.0, number))
