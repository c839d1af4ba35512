"""Verify quotations and tie them to the source (promise 3)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from hmars.grounding import find_quote
from hmars.model import Citation, Page
from hmars.query.agents import Draft, EvidenceBlock, Quote, Scope

_MARKER = re.compile(r"[ \t]*\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")


@dataclass(frozen=True, slots=True)
class VerifiedAnswer:
    text: str
    citations: tuple[Citation, ...]
    rejected: int


def verify(draft: Draft, evidence: Sequence[EvidenceBlock], scope: Scope) -> VerifiedAnswer:
    """Keep each quotation that stands in the evidence, as the exact text found there.

    A quotation attributed to the wrong block is re-anchored to the block that holds it. One that
    stands nowhere is dropped and counted. `[n]` marks without a verified quotation are taken out.
    """
    pages = {index.document.id: index.pages for index in scope.indexes}
    citations: list[Citation] = []
    moved: dict[int, int] = {}
    rejected = 0
    for quote in draft.quotes:
        found = _locate(quote, evidence)
        if found is None:
            rejected += 1
            continue
        block, start, end = found
        if block.number != quote.block:
            moved.setdefault(quote.block, block.number)
        page = _page_at(pages[block.document], block.start + start)
        citation = Citation(
            number=block.number,
            document=block.document,
            page=page.index,
            label=_label(scope, page, block, start, end),
            start=block.start + start,
            end=block.start + end,
            quote=block.text[start:end],
        )
        if citation not in citations:
            citations.append(citation)
    cited = {citation.number for citation in citations}
    text = _renumber(draft.answer, moved, cited)
    return VerifiedAnswer(text, tuple(sorted(citations, key=_order)), rejected)


def _label(scope: Scope, page: Page, block: EvidenceBlock, start: int, end: int) -> str:
    namer = scope.namers.get(block.document)
    return namer(block.start + start, block.start + end) if namer else page.label


def _order(citation: Citation) -> tuple[int, int]:
    return citation.number, citation.start


def _locate(
    quote: Quote, evidence: Sequence[EvidenceBlock]
) -> tuple[EvidenceBlock, int, int] | None:
    named = [block for block in evidence if block.number == quote.block]
    others = [block for block in evidence if block.number != quote.block]
    for block in (*named, *others):
        span = find_quote(block.text, quote.text)
        if span is not None:
            return block, *span
    return None


def _page_at(pages: Sequence[Page], offset: int) -> Page:
    return pages[bisect_right(pages, offset, key=lambda page: page.start) - 1]


def _renumber(answer: str, moved: dict[int, int], cited: set[int]) -> str:
    def replace(match: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", match[1])]
        kept = [number if number in cited else moved.get(number, 0) for number in numbers]
        kept = [number for number in dict.fromkeys(kept) if number in cited]
        lead = match[0][: len(match[0]) - len(match[0].lstrip())]
        return f"{lead}[{', '.join(map(str, kept))}]" if kept else ""

    return _MARKER.sub(replace, answer)
