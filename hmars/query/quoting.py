"""Answering by quotation: the sentences that say most of what is asked, or an abstention.

A quotation must cover the question: by rarity, most of its words must stand in the sentence, near
it, or in the name of its page. A word that occurs nowhere weighs most, and numbers and names of the
question must all be there, so "How many lamps does pier 9 have?" is not answered with pier 2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hmars.lexical import sentences
from hmars.query.agents import Draft, EvidenceBlock, OnText, Quote
from hmars.query.asked import GENERIC_STEMS
from hmars.query.ranking import LexicalIndex

NOT_FOUND = "The answer is not in the document."

ENOUGH = 0.66
"""Share of the question, by rarity, that must be covered."""
MOST_QUOTES = 3
LONGEST_QUOTE = 700
"""Characters."""
_ALSO = 0.88
"""How close to the best another sentence must score to be quoted too."""
_NEAR = np.array([1.0, 0.8, 0.65, 0.55, 0.45, 0.35, 0.3])
"""What a word counts at 0, 1, 2, ... sentences' distance."""
_GENERIC_SHARE = 0.3
"""Most that a generic word weighs, of what an unknown word does."""
_AROUND = 0.75
"""What a word counts that stands in the heading or title only."""
_OWN = 0.45
"""Share of the sentence itself in its score; the rest is what stands near it."""

_QUANTITY = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen"
    r"|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty"
    r"|ninety|hundred|thousand|million|dozen|half|twice|once|none|no)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\d{1,2}[:/.\-]\d|\b\d{4}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:today|tomorrow"
    r"|yesterday|week|month|year|morning|evening|noon|midnight|before|after|when|if|while|once|during|until|since"
    r"|january|february|march|april|may|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(r"\bhow (?:many|much|long|old|far|often|big|large|tall)\b", re.IGNORECASE)
_WHEN = re.compile(r"\bwhen\b|\bwhat (?:date|day|year|time|month)\b", re.IGNORECASE)
_NAMED = re.compile(r"[`\"“‘']([^`\"”’']{2,60})[`\"”’']|(?<=[^.?!:\s] )([^\W\d_a-z][\w\-]*)")
_LEANS = re.compile(
    r"(?:it|its|they|their|this|that|these|those|he|she|his|her|such|however|otherwise|if so|then"
    r"|but|also|in this case|in that case|here)\b",
    re.IGNORECASE,
)
_ENDED = re.compile(r"[.!?…。！？।॥؟:;][\"'”’»)\]]*\s*\Z")


@dataclass(frozen=True, slots=True)
class _Candidate:
    block: EvidenceBlock
    spans: Sequence[tuple[int, int]]
    at: int
    score: float
    coverage: float
    terms: frozenset[str]


@dataclass(frozen=True)
class _Asked:
    """The question's terms, what each weighs, and which must be there."""

    weights: dict[str, float]
    required: frozenset[str]
    answer: re.Pattern[str] | None
    """What the answer has to look like, where the question says so."""


class QuotingAnswerer:
    """Quotes at most three sentences of the evidence, each with its block's number."""

    def __init__(self, index: LexicalIndex, dialogues: frozenset[str] = frozenset()) -> None:
        self._index = index
        self._dialogues = dialogues
        """Documents in which a later statement supersedes an earlier one."""

    async def answer(
        self, question: str, evidence: Sequence[EvidenceBlock], on_text: OnText | None = None
    ) -> Draft:
        asked = self._asked(question)
        candidates = [found for block in evidence for found in self._candidates(asked, block)]
        candidates.sort(key=lambda item: (-item.score, item.block.number, item.at))
        enough = [found for found in candidates if found.coverage >= ENOUGH]
        draft = self._draft(_newest_first(enough, self._dialogues), asked)
        if on_text is not None:
            on_text(draft.answer)
        return draft

    def _asked(self, question: str) -> _Asked:
        terms = self._index.terms.content(question)
        heaviest = self._index.rarity("")
        weights: dict[str, float] = {}
        for term in terms:
            weight = self._index.rarity(term)
            if "." in term and not term[0].isdigit() and not self._index.known(term):
                continue  # "list.append" may be spelled "append()": its parts speak for it
            weights[term] = (
                min(weight, _GENERIC_SHARE * heaviest) if term in GENERIC_STEMS else weight
            )
        answer = _QUANTITY if _HOW_MANY.search(question) else None
        if answer is None and _WHEN.search(question):
            answer = _TIME
        return _Asked(weights, self._required(question, weights), answer)

    def _required(self, question: str, weights: dict[str, float]) -> frozenset[str]:
        """Numbers, names inside the question, identifiers and what stands in quotation marks."""
        required = {term for term in weights if any(sign.isdigit() or sign == "_" for sign in term)}
        for quoted, capital in _NAMED.findall(question):
            name = quoted or (capital if capital[:1].isupper() else "")
            required.update(term for term in self._index.terms.of(name) if term in weights)
        return frozenset(required)

    def _candidates(self, asked: _Asked, block: EvidenceBlock) -> list[_Candidate]:
        spans = sentences(block.text)
        found = [
            frozenset(self._index.terms.of(block.text[start:end])) & asked.weights.keys()
            for start, end in spans
        ]
        whole = sum(asked.weights.values())
        if not any(found) or not whole:
            return []
        around = frozenset(self._index.terms.of(f"{block.title} {block.context} {block.label}"))
        own = np.array([sum(asked.weights[term] for term in terms) for terms in found]) / whole
        near = np.zeros(len(spans))
        present = np.ones(len(spans), dtype=bool)
        for term, weight in asked.weights.items():
            closeness = _closeness(np.array([term in terms for terms in found]))
            if term in around:
                closeness = np.maximum(closeness, _AROUND)
            near += weight / whole * closeness
            if term in asked.required:
                present &= closeness > 0
        near = np.where(present, near, 0.0)
        return [
            _Candidate(
                block=block,
                spans=spans,
                at=at,
                score=float(
                    (_OWN * own[at] + (1 - _OWN) * near[at])
                    * _form(block.text[slice(*spans[at])], asked)
                    * (0.9 + 0.1 * block.confidence)
                ),
                coverage=float(near[at]),
                terms=found[at],
            )
            for at in range(len(spans))
            if found[at] and near[at] > 0
        ]

    def _draft(self, candidates: Sequence[_Candidate], asked: _Asked) -> Draft:
        if not candidates:
            return Draft(answer=NOT_FOUND, abstained=True)
        best = max(candidate.score for candidate in candidates)
        quotes: list[tuple[EvidenceBlock, int, int]] = []
        seen: set[str] = set()
        for candidate in candidates:
            if len(quotes) == MOST_QUOTES or candidate.score < _ALSO * best:
                break
            start, end = _quoted(candidate, asked)
            text = " ".join(candidate.block.text[start:end].split())
            inside = any(
                block is candidate.block and start < high and low < end
                for block, low, high in quotes
            )
            if not inside and text not in seen:
                seen.add(text)
                quotes.append((candidate.block, start, end))
        lines = [
            f"“{' '.join(block.text[start:end].split())}” [{block.number}]"
            for block, start, end in quotes
        ]
        return Draft(
            answer="\n\n".join(lines),
            abstained=False,
            quotes=tuple(
                Quote(block.number, block.text[start:end]) for block, start, end in quotes
            ),
        )


def _newest_first(candidates: list[_Candidate], dialogues: frozenset[str]) -> list[_Candidate]:
    """Of sentences on the same subject (as good, with the same words of the question), what was
    said last comes first: in a dialogue it is what holds."""
    if not candidates or candidates[0].block.document not in dialogues:
        return candidates
    best = candidates[0]
    rivals = [
        found
        for found in candidates
        if found.block.document == best.block.document
        and found.terms >= best.terms
        and found.score >= _ALSO * best.score
    ]
    others = [found for found in candidates if found not in rivals]
    return [*sorted(rivals, key=lambda found: (-found.block.start, -found.at)), *others]


def _closeness(where: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What a word counts at each sentence, by the distance to the nearest one that holds it."""
    closeness = np.zeros(len(where))
    for distance, value in reversed(list(enumerate(_NEAR))):
        if distance < len(where):
            closeness[distance:][where[: len(where) - distance]] = value
            closeness[: len(where) - distance][where[distance:]] = value
    return closeness


def _form(sentence: str, asked: _Asked) -> float:
    """How much a sentence looks like an answer: not a heading, not a question itself."""
    bare = sentence.strip()
    factor = 1.0
    if asked.answer is not None and not asked.answer.search(bare):
        factor *= 0.85
    if bare.endswith(("?", "？", "؟")):
        factor *= 0.75
    elif not _ENDED.search(bare) and len(bare) < 60:
        factor *= 0.85
    return factor


def _quoted(candidate: _Candidate, asked: _Asked) -> tuple[int, int]:
    """The sentence and the neighbour it needs to make sense, without the white space around."""
    text, spans = candidate.block.text, candidate.spans
    first = last = candidate.at

    def sentence(at: int) -> str:
        return text[slice(*spans[at])]

    def joined(at: int) -> bool:
        """Whether no blank line stands between a sentence and the next."""
        return not re.search(r"\n[^\S\n]*\n", sentence(at)[-8:] + sentence(at + 1)[:2])

    here = sentence(first).strip()
    leans = first and joined(first - 1) and _LEANS.match(here.lstrip("\"'“‘("))
    if leans or (first and sentence(first - 1).rstrip().endswith(":")):
        first -= 1
    more = here.endswith((":", "："))
    heading = not _ENDED.search(here) and len(here) < 60
    vague = asked.answer is not None and not asked.answer.search(here)
    if last + 1 < len(spans) and (more or heading or (vague and joined(last))):
        last += 1
        while more and last + 1 < len(spans) and last - candidate.at < 4 and joined(last):
            last += 1
    while last > candidate.at and spans[last][1] - spans[first][0] > LONGEST_QUOTE:
        last -= 1
    start, end = spans[first][0], spans[last][1]
    quote = text[start:end]
    return start + len(quote) - len(quote.lstrip()), start + len(quote.rstrip())
