"""What a page is called, and what a model is told about where it stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hmars.model import Mark, SourceText

_ROWS = re.compile(r"(?P<where>.*?)rows? (?P<from>\d+)(?:–(?P<to>\d+))?")

MarkKind = Literal["heading", "place", "turn"]


@dataclass(frozen=True, slots=True)
class PageName:
    label: str
    """For people."""
    context: str
    """For models."""


class PageNamer:
    """Names pages in reading order from the marks of the source, or from line numbers."""

    def __init__(self, source: SourceText) -> None:
        self._text = source.text
        self._headings = _Track(source.marks, "heading")
        self._spans = (_Track(source.marks, "place"), _Track(source.marks, "turn"))
        self._line_end = "\n" if "\n" in source.text else "\r"
        self._lines_before = 0
        self._counted_to = 0

    def name(self, start: int, end: int) -> PageName:
        """Places, turns and headings from first to last, or else lines.

        The context is that of the last mark at or before the start of the page that has one.
        """
        first, last = self._content(start, end)
        heading = self._headings.at(first)
        in_force = [heading] if heading else []
        labels: list[str] = []
        for track in self._spans:
            opening, closing = track.at(first), track.at(last)
            if opening and closing:
                in_force.append(opening)
                labels.append(_span(opening.label, closing.label))
        if heading:
            closing = self._headings.at(last) or heading
            labels.append(_span(heading.label, closing.label))
        label = ", ".join(filter(None, labels)) or self._lines(start, end)
        contexts = sorted((mark.start, mark.context) for mark in in_force if mark.context)
        return PageName(label, contexts[-1][1] if contexts else "")

    def _content(self, start: int, end: int) -> tuple[int, int]:
        """First and last character of the page that is not blank."""
        text = self._text[start:end]
        body = text.strip()
        if not body:
            return start, end - 1
        first = start + len(text) - len(text.lstrip())
        return first, first + len(body) - 1

    def _lines(self, start: int, end: int) -> str:
        self._lines_before += self._text.count(self._line_end, self._counted_to, start)
        self._counted_to = start
        first = self._lines_before + 1
        last = first + self._text.count(self._line_end, start, end - 1)
        return f"line {first}" if first == last else f"lines {first}–{last}"


class _Track:
    """Marks of one kind by their start."""

    def __init__(self, marks: Sequence[Mark], kind: MarkKind) -> None:
        self._marks = [mark for mark in marks if mark.kind == kind]
        self._starts = [mark.start for mark in self._marks]

    def at(self, position: int) -> Mark | None:
        index = bisect_right(self._starts, position)
        return self._marks[index - 1] if index else None


def _span(first: str, last: str) -> str:
    """`p. 34` and `p. 35` make `p. 34–35`, rows join likewise; others are set side by side."""
    if first == last:
        return first
    rows, more = _ROWS.fullmatch(first), _ROWS.fullmatch(last)
    if rows and more and rows["where"] == more["where"]:
        return f"{rows['where']}rows {rows['from']}–{more['to'] or more['from']}"
    head, _, opening = first.rpartition(" ")
    other, _, closing = last.rpartition(" ")
    if head == other and opening.isdigit() and closing.isdigit():
        return f"{first}–{closing}"
    return f"{first} – {last}"
