"""Show a document's hierarchy: the tree, pages, regions, cards, the cross-reference graph."""

from __future__ import annotations

import json
from typing import Any

from hmars.cli.render import plural, shorten
from hmars.graph import across_groups
from hmars.model import DocumentIndex, Page

SUMMARY = 110


def tree_text(index: DocumentIndex) -> str:
    """Groups, regions and pages, with the summaries that the agents wrote."""
    document = index.document
    lines = [
        f"{document.title} ({document.id}): {document.tokens:,} tokens, "
        f"{plural(document.pages, 'page')}, {plural(document.regions, 'region')}, "
        f"{plural(document.groups, 'group')}"
    ]
    regions = {region.index: region for region in index.regions}
    for group in index.groups:
        memory = index.memories.get(group.index)
        what = shorten(memory.summary, SUMMARY) if memory else "(no regional memory yet)"
        lines.append(f"└─ group {group.index}: {what}")
        for number in group.regions:
            region = regions[number]
            card = index.cards.get(number)
            summary = shorten(card.summary, SUMMARY) if card else "(no card yet)"
            first, last = region.pages[0].index, region.pages[-1].index
            lines.append(
                f"   └─ region {number}, pages {first}-{last}, {region.tokens:,} tokens: {summary}"
            )
    return "\n".join(lines)


def pages_text(index: DocumentIndex) -> str:
    return "\n".join(
        f"page {page.index:>5}  {page.start:>9}-{page.end:<9} {page.tokens:>5} tokens  {page.label}"
        for page in index.pages
    )


def page_text(page: Page) -> str:
    """Exactly the stored text."""
    return page.text


def regions_text(index: DocumentIndex) -> str:
    group_of = {number: group.index for group in index.groups for number in group.regions}
    return "\n".join(
        f"region {region.index:>4}  group {group_of[region.index]:>3}  "
        f"{region.start:>9}-{region.end:<9} {region.tokens:>6} tokens  "
        f"pages {region.pages[0].index}-{region.pages[-1].index}"
        for region in index.regions
    )


def cards_text(index: DocumentIndex) -> str:
    parts: list[str] = []
    for region in index.regions:
        card = index.cards.get(region.index)
        head = f"region {region.index} (pages {region.pages[0].index}-{region.pages[-1].index})"
        if card is None:
            parts.append(f"{head}: no card yet")
            continue
        lines = [f"{head}, by {card.author}"]
        if card.degraded:
            lines.append(f"  degraded: {card.degraded}")
        lines += [
            f"  summary:  {card.summary}",
            f"  topics:   {'; '.join(card.topics) or '-'}",
            f"  entities: {'; '.join(card.entities) or '-'}",
        ]
        first = region.pages[0].index
        lines += [f"  page {first + gist.page - 1}: {gist.gist}" for gist in card.page_index]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def graph_text(index: DocumentIndex) -> str:
    lines: list[str] = []
    for link in graph_json(index)["crossrefs"]:
        regions = ", ".join(str(number) for number in link["regions"])
        extra = f": {link['note']}" if link["note"] else ""
        lines.append(f"{link['kind']}  {link['subject']}  regions {regions}{extra}")
    return "\n".join(lines) or "No cross-references."


def hierarchy_json(index: DocumentIndex) -> dict[str, Any]:
    document = index.document
    return {
        "document": document.id,
        "title": document.title,
        "characters": document.characters,
        "tokens": document.tokens,
        "tokenizer": document.tokenizer,
        "complete": document.complete,
        "groups": [
            {
                "index": group.index,
                "regions": list(group.regions),
                "memory": _dump(index.memories.get(group.index)),
            }
            for group in index.groups
        ],
        "regions": regions_json(index),
    }


def regions_json(index: DocumentIndex) -> list[dict[str, Any]]:
    return [
        {
            "index": region.index,
            "start": region.start,
            "end": region.end,
            "tokens": region.tokens,
            "pages": [page.index for page in region.pages],
        }
        for region in index.regions
    ]


def pages_json(index: DocumentIndex) -> list[dict[str, Any]]:
    return [page_json(page) for page in index.pages]


def page_json(page: Page) -> dict[str, Any]:
    return {
        "index": page.index,
        "start": page.start,
        "end": page.end,
        "tokens": page.tokens,
        "label": page.label,
        "text": page.text,
    }


def cards_json(index: DocumentIndex) -> list[dict[str, Any]]:
    return [
        {"region": number, **(_dump(index.cards[number]) or {})} for number in sorted(index.cards)
    ]


def graph_json(index: DocumentIndex) -> dict[str, Any]:
    """Cross-references inside groups, from the regional memories, and between groups."""
    found: list[dict[str, Any]] = []
    for group in index.groups:
        memory = index.memories.get(group.index)
        for reference in memory.crossrefs if memory else ():
            regions = [group.regions[number - 1] for number in reference.regions]
            found.append({**reference.model_dump(mode="json"), "regions": regions})
    found += [reference.model_dump(mode="json") for reference in across_groups(index)]
    return {"document": index.document.id, "crossrefs": found}


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _dump(value: Any) -> dict[str, Any] | None:  # noqa: ANN401 - any frozen model
    return None if value is None else value.model_dump(mode="json")
