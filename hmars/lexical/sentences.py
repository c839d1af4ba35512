"""Cutting text at its own joints: sentences, and passages of whole sentences.

Both tile the text: each stretch is a half-open pair of code point offsets, the first begins where
the text does, the last ends where it ends, and white space belongs to what stands before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int]

LONGEST_SENTENCE = 1000
"""Characters. A longer stretch without an end is cut at white space, or anywhere."""

_CLOSERS = "\"'”’»)\\]}*_`"
_BLANKS = r"[^\S\n]*+(?:\n(?:[^\S\n]*+\n)*+)?"
"""What follows an end: blanks, the line break, empty lines; not the indent of the next line."""
_ENDS = re.compile(
    rf"""
      (?<![.!?…])[.!?…]++[{_CLOSERS}]*+(?=\s){_BLANKS}   # "4.2" is no end
    | [。！？．｡।॥؟۔၊။።⁇⁈⁉‼]++[”’」』）】》{_CLOSERS}]*+{_BLANKS}
    | \n(?:[^\S\n]*+\n)*+
    """,
    re.VERBOSE,
)
_STARTS_ITEM = re.compile(
    r"[ \t]*(?:[-*+•·◦▪>|#=~]|(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})[.)]\s|\(\w{1,4}\)\s|```|\[)"
)
_SPEAKER = re.compile(r"(?![a-z])[^\n:().]{1,40}:[ \t]+\S")
_ABBREVIATION = re.compile(
    r"""(?xi)(?:^|[\s(\[“"'])(?:
        mr|mrs|ms|dr|prof|st|sr|jr|vs|etc|e\.?g|i\.?e|cf|al|no|nos|fig|figs|sec|art|eq|ch|vol|pp?
        |inc|ltd|co|corp|llc|dept|est|approx|gen|col|sgt|capt|rev|hon|jan|feb|mar|apr|jun|jul|aug
        |sept?|oct|nov|dec|mon|tue|wed|thu|fri|[a-z](?:\.[a-z])*
    )\.[^\S\n]*\n?\Z"""
)
_SHORT_LINE, _LONG_LINE = 45, 120


def sentences(text: str) -> list[Span]:
    """Sentences, list items, headings and lines of code, tiling the text."""
    spans: list[Span] = []
    start = 0
    for end in (*_boundaries(text), len(text)):
        if end <= start or (end < len(text) and not text[start:end].strip()):
            continue
        spans.extend(_bounded(text, start, end))
        start = end
    return spans


def _boundaries(text: str) -> Iterator[int]:
    for match in _ENDS.finditer(text):
        sign = text[match.start()]
        if sign == "\n":
            if "\n" in match.group()[1:] or _line_ends(text, match.start()):
                yield match.end()
        elif sign not in ".!?…" or _sentence_ends(text, match):
            yield match.end()


def _sentence_ends(text: str, match: re.Match[str]) -> bool:
    if match.group().endswith("\n") and _line_ends(text, match.end() - 1):
        return True
    after = text[match.end() : match.end() + 1]
    if after.islower():
        return False
    if text[match.start()] != ".":
        return True
    return not _ABBREVIATION.search(text, max(0, match.start() - 12), match.end())


def _line_ends(text: str, newline: int) -> bool:
    """Whether a single line break ends a sentence: not where a paragraph was wrapped to a width."""
    before = text.rfind("\n", 0, newline) + 1
    length = newline - before
    if length < _SHORT_LINE or length > _LONG_LINE:
        return True
    follows = text[newline + 1 : newline + 48]
    if _STARTS_ITEM.match(follows) or _SPEAKER.match(follows):
        return True
    return _indent(text[before:newline]) + 2 <= _indent(follows)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _bounded(text: str, start: int, end: int) -> Iterator[Span]:
    while end - start > LONGEST_SENTENCE:
        limit = start + LONGEST_SENTENCE
        half = start + LONGEST_SENTENCE // 2
        space = max(text.rfind(" ", half, limit), text.rfind("\n", half, limit))
        cut = space + 1 if space > start else limit
        yield start, cut
        start = cut
    yield start, end


def passages(text: str, size: int, starts: NDArray[np.uint32], *, offset: int = 0) -> list[Span]:
    """Stretches of whole sentences of about `size` tokens each, tiling the text.

    They are of nearly equal size: a page of 1,000 tokens makes four of 250 rather than three of 256
    and a rest. A single sentence longer than `size` stays whole.

    Args:
        text: what to cut.
        size: tokens.
        starts: where each token of `text` begins, as a tokenizer says.
        offset: added to every offset that is returned.
    """
    target = len(starts) / max(1, round(len(starts) / size))
    ends = [end for _, end in sentences(text)]
    counts = np.searchsorted(starts, ends).tolist()
    spans: list[Span] = []
    begin = done = before = 0
    for end, used in zip(ends, counts, strict=True):
        # Half of the sentence at hand decides on which side of the edge it falls.
        if used - done >= target - (used - before) / 2 and end < len(text):
            spans.append((offset + begin, offset + end))
            begin, done = end, used
        before = used
    if begin < len(text):
        spans.append((offset + begin, offset + len(text)))
    return spans
