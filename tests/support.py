"""Small documents and agents for tests, made without files or models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hmars.model import (
    Document,
    DocumentIndex,
    Group,
    MemoryCard,
    Page,
    Region,
    RegionalMemory,
)
from hmars.query.agents import (
    Broadcast,
    Draft,
    EvidenceBlock,
    Guidance,
    OnText,
    QueryAgents,
    Quote,
    RegionSelection,
    Scope,
    SelectedPage,
)


def make_index(
    regions: Sequence[Sequence[str]],
    *,
    document: str = "doc",
    group_size: int = 10,
    cards: bool = True,
) -> DocumentIndex:
    """A document from page texts by region; one token is one word."""
    offset = 0
    number = 0
    made: list[Region] = []
    for index, texts in enumerate(regions, start=1):
        pages: list[Page] = []
        for text in texts:
            number += 1
            tokens = max(1, len(text.split()))
            end = offset + len(text)
            pages.append(Page(number, offset, end, tokens, f"p. {number}", "", text))
            offset = end
        made.append(Region(document, index, tuple(pages)))
    numbers = [region.index for region in made]
    groups = tuple(
        Group(position, tuple(numbers[start : start + group_size]))
        for position, start in enumerate(range(0, len(numbers), group_size), start=1)
    )
    card = MemoryCard(summary="s", author="test")
    memory = RegionalMemory(summary="m", author="test")
    return DocumentIndex(
        document=Document(
            id=document,
            namespace="default",
            title=document.title(),
            source=f"/{document}",
            kind="text",
            content_hash="0",
            characters=offset,
            tokens=sum(region.tokens for region in made),
            pages=number,
            regions=len(made),
            groups=len(groups),
            tokenizer="words",
            updated="2026-01-01T00:00:00+00:00",
        ),
        regions=tuple(made),
        groups=groups,
        cards=dict.fromkeys(numbers, card) if cards else {},
        memories={group.index: memory for group in groups} if cards else {},
    )


def scope_of(*indexes: DocumentIndex) -> Scope:
    return Scope(tuple(indexes))


@dataclass
class FakeAgents:
    """Agents by function; each records what it was asked."""

    select_with: Callable[[Region], RegionSelection]
    draft_with: Callable[[Sequence[EvidenceBlock]], Draft] = field(
        default=lambda evidence: Draft("Yes [1].", False, (Quote(1, evidence[0].text.strip()),))
    )
    broadcast_with: Callable[[Group], Broadcast] = field(
        default=lambda group: Broadcast(interpretation="understood")
    )
    guided: dict[int, Guidance] = field(default_factory=dict[int, Guidance])
    answered: list[Sequence[EvidenceBlock]] = field(default_factory=list[Sequence[EvidenceBlock]])

    async def broadcast(self, question: str, index: DocumentIndex, group: Group) -> Broadcast:
        return self.broadcast_with(group)

    async def select(
        self, question: str, region: Region, card: MemoryCard | None, guidance: Guidance
    ) -> RegionSelection:
        self.guided[region.index] = guidance
        return self.select_with(region)

    async def answer(
        self, question: str, evidence: Sequence[EvidenceBlock], on_text: OnText | None = None
    ) -> Draft:
        self.answered.append(evidence)
        return self.draft_with(evidence)

    def agents(self) -> QueryAgents:
        return QueryAgents(self, self, self)


def select_all_pages(region: Region) -> RegionSelection:
    return RegionSelection(tuple(SelectedPage(page, 0.9) for page in region.pages))


def select_nothing(region: Region) -> RegionSelection:
    return RegionSelection()
