"""Reading order of one PDF page: rows, columns, paragraphs.

PDF stores glyphs at places, in any order. What is read here are *segments*, stretches of text
without a wide gap, with their boxes in points and y growing downwards. Segments on one height
make a row; a vertical band that no segment crosses, with prose on both sides, is a gutter, and
its left side is read before its right side. Tables are rows, not columns: numbers beside labels
fail the prose test on purpose.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise

BIN = 2.0
"""Points: resolution of the search for gutters."""
MIN_GUTTER = 5.0
MIN_REGION = 150.0
"""Points: narrower regions are not split again."""
MIN_ROWS = 3
MIN_COLUMN_CHARS = 18.0
"""Mean characters of a row of a prose column (wide scripts count twice)."""
MIN_LETTERS = 0.6
MIN_FILL = 0.5
"""Median share of a column's width that its rows fill."""
MAX_CROSSING = 0.5
"""Rows that may cross a gutter (titles, wide figures), as a share of all rows."""
MAX_DEPTH = 4
PARAGRAPH_PITCH = 1.4
"""A row this many times the usual distance below the one before starts a paragraph."""


@dataclass(frozen=True, slots=True)
class Segment:
    x0: float
    y0: float
    x1: float
    y1: float
    text: str

    @property
    def height(self) -> float:
        return max(self.y1 - self.y0, 1.0)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of text as it is read; `gap` says that a paragraph ends before it."""

    text: str
    y0: float
    y1: float
    gap: bool = False


def reading_order(segments: Sequence[Segment], depth: int = 0) -> list[Row]:
    """Rows of a page (or a part of it) in the order a human reads them."""
    bands = group_rows(segments)
    gutter = _find_gutter(segments, bands) if depth < MAX_DEPTH else None
    if gutter is None:
        return _with_paragraphs(bands)
    read: list[Row] = []
    for across, part in groupby(bands, key=lambda row: any(_crosses(s, gutter) for s in row)):
        rows = list(part)
        if across:
            read += _with_paragraphs(rows, first_gap=bool(read))
        else:
            read += _read_columns(rows, gutter, depth)
    return read


def group_rows(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Segments that share a height, each row from left to right, rows from top to bottom."""
    rows: list[list[Segment]] = []
    top = bottom = 0.0
    for segment in sorted(segments, key=lambda item: (item.y0 + item.y1, item.x0)):
        overlap = min(bottom, segment.y1) - max(top, segment.y0)
        smaller = min(bottom - top, segment.height)
        if rows and overlap >= 0.5 * smaller:
            rows[-1].append(segment)
            if segment.height > bottom - top:
                top, bottom = segment.y0, segment.y1
        else:
            rows.append([segment])
            top, bottom = segment.y0, segment.y0 + segment.height
    for row in rows:
        row.sort(key=lambda item: item.x0)
    return rows


def row_text(row: Sequence[Segment]) -> str:
    """The row with two spaces where a wide gap stands, as between cells of a table."""
    parts = [row[0].text]
    for before, after in pairwise(row):
        gap, size = after.x0 - before.x1, min(before.height, after.height)
        if gap > 1.2 * size:
            parts.append("  ")
        elif gap > 0.12 * size:
            parts.append(" ")
        parts.append(after.text)
    return "".join(parts)


def _crosses(segment: Segment, gutter: float) -> bool:
    return segment.x0 < gutter - 1 and segment.x1 > gutter + 1


def _read_columns(bands: Sequence[Sequence[Segment]], gutter: float, depth: int) -> list[Row]:
    segments = [segment for band in bands for segment in band]
    left = [segment for segment in segments if segment.x1 <= gutter + 1]
    right = [segment for segment in segments if segment.x1 > gutter + 1]
    if left and right and not (_is_prose(left, rows=2) and _is_prose(right, rows=2)):
        return _with_paragraphs(bands, first_gap=True)
    read: list[Row] = []
    for side in (left, right):
        rows = reading_order(side, depth + 1)
        if rows:
            first = rows[0]
            read += [Row(first.text, first.y0, first.y1, gap=True), *rows[1:]]
    return read


def _with_paragraphs(bands: Sequence[Sequence[Segment]], first_gap: bool = False) -> list[Row]:
    tops = [min(segment.y0 for segment in band) for band in bands]
    pitches = [after - before for before, after in pairwise(tops)]
    usual = statistics.median(pitches) if pitches else 0.0
    rows: list[Row] = []
    for place, band in enumerate(bands):
        gap = first_gap if place == 0 else pitches[place - 1] > PARAGRAPH_PITCH * usual
        bottom = max(segment.y1 for segment in band)
        rows.append(Row(row_text(band), tops[place], bottom, gap))
    return rows


def _find_gutter(segments: Sequence[Segment], bands: Sequence[Sequence[Segment]]) -> float | None:
    if len(bands) < MIN_ROWS:
        return None
    left = min(segment.x0 for segment in segments)
    right = max(segment.x1 for segment in segments)
    if right - left < MIN_REGION:
        return None
    covered = _coverage(bands, left, right)
    best: tuple[int, float] | None = None
    for gutter in _candidates(covered, left, len(bands)):
        west = [segment for segment in segments if segment.x1 <= gutter + 1]
        east = [segment for segment in segments if segment.x0 >= gutter - 1]
        if not (_is_prose(west) and _is_prose(east) and _side_by_side(west, east)):
            continue
        size = sum(len(segment.text) for segment in west) + sum(len(s.text) for s in east)
        if best is None or size > best[0]:
            best = (size, gutter)
    return best[1] if best else None


def _coverage(bands: Sequence[Sequence[Segment]], left: float, right: float) -> list[int]:
    """For each bin of the width, how many rows have a segment over it."""
    steps = [0] * (int((right - left) / BIN) + 2)
    for band in bands:
        reached = -1
        for segment in band:
            start = max(int((segment.x0 - left) / BIN), reached + 1)
            end = int((segment.x1 - left) / BIN)
            if end >= start:
                steps[start] += 1
                steps[end + 1] -= 1
                reached = end
    return list(accumulate(steps[:-1]))


def _candidates(covered: Sequence[int], left: float, rows: int) -> list[float]:
    """Middles of the emptiest stretches between the margins."""
    low, high = int(len(covered) * 0.12), int(len(covered) * 0.88)
    if high <= low:
        return []
    found: list[float] = []
    for limit in {0, min(covered[low:high]), int(rows * 0.1), int(rows * MAX_CROSSING)}:
        start: int | None = None
        for place in range(low, high + 1):
            empty = place < high and covered[place] <= limit
            if empty and start is None:
                start = place
            elif not empty and start is not None:
                if (place - start) * BIN >= MIN_GUTTER:
                    found.append(left + (start + place) / 2 * BIN)
                start = None
    return found


def _is_prose(segments: Sequence[Segment], rows: int = MIN_ROWS) -> bool:
    lines = group_rows(segments)
    if len(lines) < rows:
        return False
    text = "".join(segment.text for segment in segments)
    marks = [char for char in text if not char.isspace()]
    letters = sum(char.isalpha() for char in marks)
    if not marks or letters / len(marks) < MIN_LETTERS:
        return False
    characters = sum(2 if ord(char) >= 0x2E80 else 1 for char in text)
    if characters / len(lines) < MIN_COLUMN_CHARS:
        return False
    width = max(segment.x1 for segment in segments) - min(segment.x0 for segment in segments)
    fills = [sum(segment.x1 - segment.x0 for segment in line) / max(width, 1.0) for line in lines]
    return statistics.median(fills) >= MIN_FILL


def _side_by_side(west: Sequence[Segment], east: Sequence[Segment]) -> bool:
    spans = [(min(s.y0 for s in side), max(s.y1 for s in side)) for side in (west, east)]
    overlap = min(spans[0][1], spans[1][1]) - max(spans[0][0], spans[1][0])
    return overlap >= 0.4 * min(bottom - top for top, bottom in spans)
