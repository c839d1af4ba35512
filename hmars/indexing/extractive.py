"""Deterministic sub-agents and mid-agents: cards from the text's own words, without a model.

They are the `extractive` profile, and what stands in where a model gave no usable card.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hmars.graph import candidates as suggested_references
from hmars.lexical import STOP_WORDS, Terms, key_phrases, names, sentences
from hmars.model import (
    CrossReference,
    MemoryCard,
    Page,
    PageGist,
    Region,
    RegionalMemory,
    SubmapEntry,
)

AUTHOR = "extractive/1"

GIST_LENGTH = 160
"""Characters of the line about one page."""
SUMMARY_LENGTH = 480
REGIONAL_SUMMARY_LENGTH = 1200
_SUMMARY_SENTENCES = 3
_USUAL_LENGTH = range(30, 320)
"""Characters of a sentence that says something by itself."""


@dataclass(frozen=True)
class ExtractiveCardAgent:
    """Writes a card from the most central sentences, key phrases, names, numbers and dates."""

    terms: Terms = field(default_factory=Terms)

    @property
    def author(self) -> str:
        return AUTHOR

    async def write_card(self, region: Region) -> MemoryCard:
        return _card(region, self.terms, None)


@dataclass(frozen=True)
class ExtractiveRegionalAgent:
    """Joins cards as they are; takes over the cross-references that the entity graph suggests."""

    @property
    def author(self) -> str:
        return AUTHOR

    async def write_memory(
        self, cards: Sequence[MemoryCard], candidates: Sequence[CrossReference]
    ) -> RegionalMemory:
        return _memory(cards, candidates, None)


def fallback_card(region: Region, reason: str) -> MemoryCard:
    """The card of a region whose own agent failed, marked with the reason (promise 7)."""
    return _card(region, Terms(), reason)


def fallback_memory(
    cards: Sequence[MemoryCard], candidates: Sequence[CrossReference], reason: str
) -> RegionalMemory:
    """The regional memory of a group whose own agent failed, marked with the reason."""
    return _memory(cards, candidates or suggested_references(cards), reason)


@dataclass(frozen=True, slots=True)
class _Sentence:
    page: int
    order: int
    text: str
    terms: frozenset[str]
    weight: float


def _card(region: Region, terms: Terms, degraded: str | None) -> MemoryCard:
    found = _weighed(region, terms)
    named = names(region.text)
    return MemoryCard(
        summary=_summary(found),
        topics=key_phrases(region.text),
        entities=tuple(
            dict.fromkeys(
                (
                    *named.proper[:14],
                    *named.identifiers[:8],
                    *named.dates[:8],
                    *named.amounts[:8],
                )
            )
        ),
        page_index=tuple(_gists(region, found)),
        author=AUTHOR,
        degraded=degraded,
    )


def _weighed(region: Region, terms: Terms) -> list[_Sentence]:
    """Sentences by how much of what recurs in the region they say, for their length."""
    raw: list[tuple[int, int, str, list[str]]] = []
    counts: Counter[str] = Counter()
    for number, page in enumerate(region.pages, start=1):
        for order, (start, end) in enumerate(sentences(page.text)):
            text = one_line(page.text[start:end])
            words = [term for term in terms.of(text) if term not in STOP_WORDS]
            counts.update(set(words))
            raw.append((number, order, text, words))
    return [
        _Sentence(number, order, text, frozenset(words), _weight(text, words, counts, order))
        for number, order, text, words in raw
        if words
    ]


def _weight(text: str, words: list[str], counts: Counter[str], order: int) -> float:
    central = sum(math.log(counts[word]) for word in set(words) if len(word) > 1)
    weight = central / (8 + len(words))
    letters = sum(sign.isalpha() or sign == " " for sign in text)
    if letters < 0.75 * len(text):  # a row of a table, a line of code
        weight *= 0.4
    if len(text) not in _USUAL_LENGTH and text.isascii():
        weight *= 0.5
    return weight * (1.25 if order == 0 else 1.0)


def _summary(found: Sequence[_Sentence]) -> str:
    """The most central sentences in reading order; one that repeats another is passed over."""
    chosen: list[_Sentence] = []
    length = 0
    for sentence in sorted(found, key=lambda item: (-item.weight, item.page, item.order)):
        if len(chosen) == _SUMMARY_SENTENCES:
            break
        repeats = any(
            len(sentence.terms & other.terms) > 0.6 * len(sentence.terms) for other in chosen
        )
        if repeats or (chosen and length + len(sentence.text) > SUMMARY_LENGTH):
            continue
        chosen.append(sentence)
        length += len(sentence.text)
    chosen.sort(key=lambda item: (item.page, item.order))
    return shortened(" ".join(sentence.text for sentence in chosen), SUMMARY_LENGTH)


def _gists(region: Region, found: Sequence[_Sentence]) -> list[PageGist]:
    best: dict[int, _Sentence] = {}
    for sentence in found:
        if sentence.page not in best or sentence.weight > best[sentence.page].weight:
            best[sentence.page] = sentence
    gists: list[PageGist] = []
    for number, page in enumerate(region.pages, start=1):
        text = best[number].text if number in best else _first_line(page)
        if text:
            gists.append(PageGist(page=number, gist=shortened(text, GIST_LENGTH)))
    return gists


def _first_line(page: Page) -> str:
    return next((one_line(line) for line in page.text.splitlines() if line.strip()), "")


def one_line(text: str) -> str:
    return " ".join(text.split())


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, cut between words where there are any."""
    text = one_line(text)
    if len(text) <= limit:
        return text
    space = text.rfind(" ", limit // 2, limit)
    return text[: space if space > 0 else limit - 1].rstrip(" ,;:") + "…"


def _memory(
    cards: Sequence[MemoryCard], candidates: Sequence[CrossReference], degraded: str | None
) -> RegionalMemory:
    share = max(80, REGIONAL_SUMMARY_LENGTH // max(1, len(cards)))
    summaries: list[str] = []
    for card in cards:
        spans = sentences(card.summary)
        if spans:
            summaries.append(shortened(card.summary[: spans[0][1]], share))
    return RegionalMemory(
        summary=" ".join(summaries),
        submap=tuple(
            SubmapEntry(region=number, topics=card.topics[:8], entities=card.entities[:16])
            for number, card in enumerate(cards, start=1)
        ),
        crossrefs=tuple(candidates),
        author=AUTHOR,
        degraded=degraded,
    )
