"""Small documents for the tests of the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hmars.model import (
    CrossReference,
    Document,
    Group,
    MemoryCard,
    Page,
    PageGist,
    Region,
    RegionalMemory,
    SourceText,
)
from hmars.store import Store, card_key, memory_key

AUTHOR = "tester@1"
Texts = Sequence[Sequence[str]]
"""Page texts by region."""


def regions_of(texts: Texts, label: str = "p.") -> list[Region]:
    regions: list[Region] = []
    start, number = 0, 1
    for index, page_texts in enumerate(texts, start=1):
        pages: list[Page] = []
        for text in page_texts:
            end = start + len(text)
            tokens = len(text.split())
            pages.append(Page(number, start, end, tokens, f"{label} {number}", "", text))
            start, number = end, number + 1
        regions.append(Region("not yet known", index, tuple(pages)))
    return regions


def groups_of(regions: Sequence[Region], size: int = 2) -> list[Group]:
    wanted = [region.index for region in regions if not region.blank]
    return [
        Group(number, tuple(wanted[start : start + size]))
        for number, start in enumerate(range(0, len(wanted), size), start=1)
    ]


def save(
    store: Store,
    texts: Texts,
    *,
    source: str = "/books/harbour.txt",
    title: str = "The Harbour",
    namespace: str = "default",
    label: str = "p.",
    **settings: Any,
) -> Document:
    regions = regions_of(texts, label)
    text = "".join(region.text for region in regions)
    return store.save_document(
        namespace,
        SourceText(text, source, title, warnings=("read as latin-1",)),
        regions,
        groups_of(regions),
        tokenizer="words",
        tokens=sum(region.tokens for region in regions),
        settings=settings or {"page_tokens": 8},
    )


def card_for(region: Region, *, author: str = AUTHOR, degraded: str | None = None) -> MemoryCard:
    return MemoryCard(
        summary=f"about {region.text[:40]}",
        topics=("tide",),
        entities=("Mira",),
        page_index=(PageGist(page=1, gist="the first page"),),
        author=author,
        degraded=degraded,
    )


def memory_for(regions: Sequence[Region], *, degraded: str | None = None) -> RegionalMemory:
    return RegionalMemory(
        summary="joins " + " ".join(region.text[:40] for region in regions),
        crossrefs=(CrossReference(kind="shared_entity", subject="Mira", regions=(1, 2)),),
        author=AUTHOR,
        degraded=degraded,
    )


def put_cards(store: Store, document: Document, *, author: str = AUTHOR) -> None:
    index = store.load_index(document.namespace, document.id)
    for region in index.regions:
        if not region.blank:
            key = card_key(author, region.key)
            card = card_for(region, author=author)
            store.put_card(document.namespace, document.id, region, key, card)


def put_memories(store: Store, document: Document) -> None:
    index = store.load_index(document.namespace, document.id)
    for group in index.groups:
        regions = [index.regions[number - 1] for number in group.regions]
        key = memory_key(AUTHOR, [region.key for region in regions])
        memory = memory_for(regions)
        store.put_memory(document.namespace, document.id, regions, key, memory)
