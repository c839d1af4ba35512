"""Supporting-evidence recall and precision over character spans (S-HMARS 4.4).

A gold unit is a stretch of the text that a question needs. It counts as passed when all of it, but
for white space at its ends, lies in the evidence; overlap that is not all of it is told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Span = tuple[int, int]
"""Code points, half-open."""

NEARLY = 0.9


@dataclass(frozen=True, slots=True)
class GoldUnit:
    """One thing a question needs. It may stand at several places: any one of them is enough."""

    places: tuple[Span, ...]
    label: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What evidence holds of the gold of one question. Shares lie in 0..1."""

    units: int
    recall: float
    """Share of the units that lie wholly in the evidence."""
    nearly: float
    """Share of the units of which at least nine tenths of the characters lie in it."""
    partial: float
    """Share of the units of which at least one character lies in it, but not all."""
    characters: float
    """Mean share of a unit's characters that lie in it."""
    precision: float
    """Share of the evidence's characters that lie in gold; 0 for no evidence."""


def coverage(text: str, gold: Sequence[GoldUnit], passed: Iterable[Span]) -> Coverage:
    """Compare evidence with gold.

    Args:
        text: the document; spans refer to it.
        gold: at least one unit.
        passed: the evidence, in any order, overlapping or not.

    Raises:
        ValueError: no gold, so there is nothing to divide by.
    """
    if not gold:
        raise ValueError("a question without gold evidence has no recall")
    evidence = union(passed)
    shares = [max(_share(text, place, evidence) for place in unit.places) for unit in gold]
    total = len(gold)
    full = sum(share == 1.0 for share in shares)
    return Coverage(
        units=total,
        recall=full / total,
        nearly=sum(share >= NEARLY for share in shares) / total,
        partial=sum(0.0 < share < 1.0 for share in shares) / total,
        characters=sum(shares) / total,
        precision=_precision(gold, evidence),
    )


def union(spans: Iterable[Span]) -> list[Span]:
    """The same characters as spans that neither overlap nor touch, in order."""
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def length(spans: Iterable[Span]) -> int:
    """Characters in a union."""
    return sum(end - start for start, end in spans)


def overlap(span: Span, evidence: Sequence[Span]) -> int:
    """How many characters of `span` lie in a union."""
    return sum(max(0, min(span[1], end) - max(span[0], start)) for start, end in evidence)


def trimmed(text: str, span: Span) -> Span:
    """The span without white space at its ends; an all-white span stays as it is."""
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else span


def _share(text: str, place: Span, evidence: Sequence[Span]) -> float:
    start, end = trimmed(text, place)
    return overlap((start, end), evidence) / (end - start) if end > start else 0.0


def _precision(gold: Sequence[GoldUnit], evidence: Sequence[Span]) -> float:
    total = length(evidence)
    if not total:
        return 0.0
    needed = union(place for unit in gold for place in unit.places)
    return sum(overlap(span, evidence) for span in needed) / total
