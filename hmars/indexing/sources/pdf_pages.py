"""From segments of many PDF pages to text: running lines out, hyphens joined."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from hmars.indexing.sources.pdf_layout import (
    Row,
    Segment,
    group_rows,
    reading_order,
    row_text,
)

EDGE_ROWS = 3
"""Rows at the top and at the bottom of a page that may be running headers or footers."""
MIN_REPEATS = 3
RUN_LENGTH = 5
"""So many pages in a row (or every other page) with the same line make it a running line."""
MARGIN = 0.15
"""Share of the page's height, at the top and at the bottom, where they may stand."""
SHARE = 0.3
"""Or this share of all pages."""

_NUMBER = re.compile(r"\d{1,4}")
_BEFORE_NUMBER = re.compile(
    r"(?:^\W*|  |[|/–—-] ?|\b(?:page|p\.|seite|pagina|página|стр\.|第) ?)$", re.IGNORECASE
)
_AFTER_NUMBER = re.compile(
    r"\W*$|  | ?[|/–—-]| (?:of|von|de|di|из) \d+\W*$| ?(?:页|頁|ページ|쪽)", re.IGNORECASE
)
_ROMAN = re.compile(r"^[ivxlc]{1,8}$", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LINE_END = re.compile(r"([^\W\d_]+)[-\u00ad\u2010]$")
_LINE_START = re.compile(r"^([^\W\d_]+)")
_ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}

Key = tuple[str, int | None]


def page_texts(pages: Sequence[Sequence[Segment]], heights: Sequence[float]) -> Iterator[str]:
    """The text of each page, in reading order."""
    running = _running_lines(pages, heights)
    ordered = [reading_order(_without(page, running.get(i))) for i, page in enumerate(pages)]
    words = Counter(
        word.lower() for rows in ordered for row in rows for word in _WORD.findall(row.text)
    )
    for rows in ordered:
        yield _join_rows(rows, words)


def _without(page: Sequence[Segment], drop: set[Segment] | None) -> Sequence[Segment]:
    return [segment for segment in page if segment not in drop] if drop else page


# ---------------------------------------------------------------- running headers and footers


def _running_lines(
    pages: Sequence[Sequence[Segment]], heights: Sequence[float]
) -> dict[int, set[Segment]]:
    """Segments to leave out, by page. The first page with a line of words keeps it."""
    edges = [_edges(page, height) for page, height in zip(pages, heights, strict=True)]
    places: defaultdict[Key, list[int]] = defaultdict(list)
    for index, sides in enumerate(edges):
        for key in {key for side in sides for row in side for key in _keys(row, index)}:
            places[key].append(index)
    running = {key for key, found in places.items() if _repeats(key, found, len(pages))}
    drop: dict[int, set[Segment]] = {}
    kept: set[Key] = set()
    for index, sides in enumerate(edges):
        for side in sides:
            for row in side:
                keys = [key for key in _keys(row, index) if key in running]
                if not keys:
                    break  # a line further inside is not at the edge
                fresh = not any(key in kept for key in keys)
                kept.update(keys)
                if fresh and any(char.isalpha() for char in keys[0][0].replace("#", "")):
                    continue
                drop.setdefault(index, set()).update(row)
    return drop


def _edges(
    page: Sequence[Segment], height: float
) -> tuple[list[list[Segment]], list[list[Segment]]]:
    """Rows in the margins from outside in; never so many that nothing of the page is left."""
    rows = group_rows(page)
    most = min(EDGE_ROWS, (len(rows) - 1) // 2)
    low, high = height * MARGIN, height * (1 - MARGIN)
    top = [row for row in rows[:most] if row[0].y1 <= low]
    bottom = [row for row in rows[::-1][:most] if row[0].y0 >= high]
    return top, bottom


def _keys(row: Sequence[Segment], index: int) -> list[Key]:
    """What would make this line a repetition: the same text, or a page number.

    The distance between the printed number and the page is part of the key, so that rows of
    tables, whose numbers do not count pages, are never taken for footers; nor are headings such
    as `Invoice 1001`, since a page number stands apart from other words.
    """
    text = row_text(row).strip()
    if _ROMAN.match(text):
        return [("#", _roman(text.lower()) - index)]
    keys: list[Key] = [(text, None)] if any(char.isalpha() for char in text) else []
    for number in _NUMBER.finditer(text):
        before, after = text[: number.start()], text[number.end() :]
        if _BEFORE_NUMBER.search(before) and _AFTER_NUMBER.match(after):
            keys.append((f"{before}#{after}", int(number.group()) - index))
    return keys


def _repeats(key: Key, pages: Sequence[int], count: int) -> bool:
    if len(pages) < MIN_REPEATS:
        return False
    if key[1] is not None or len(pages) >= SHARE * count:
        return True
    run = 1
    for before, after in pairwise(pages):
        run = run + 1 if after - before <= 2 else 1
        if run >= RUN_LENGTH:
            return True
    return False


def _roman(text: str) -> int:
    values = [_ROMAN_DIGITS[char] for char in text]
    return sum(
        -value if value < max(values[place + 1 :], default=0) else value
        for place, value in enumerate(values)
    )


# ---------------------------------------------------------------- lines


def _join_rows(rows: Iterable[Row], words: Counter[str]) -> str:
    lines: list[str] = []
    for row in rows:
        text = row.text.strip()
        if not text:
            continue
        if lines and not row.gap:
            text = _join_hyphen(lines, text, words)
        elif lines:
            lines.append("")
        if text:
            lines.append(text)
    return "\n".join(lines)


def _join_hyphen(lines: list[str], text: str, words: Counter[str]) -> str:
    """Move the rest of a divided word to the line where it began; returns what is left."""
    end, start = _LINE_END.search(lines[-1]), _LINE_START.match(text)
    if not end or not start or not start.group(1)[0].islower():
        return text
    head, tail = end.group(1), start.group(1)
    # Compound words keep their hyphen: the rest of the document shows how the word is written.
    keeps = words[f"{head}-{tail}".lower()] > words[f"{head}{tail}".lower()]
    rest = text[len(tail) :]
    glued, _, after = rest.partition(" ")
    lines[-1] = f"{lines[-1][: end.end(1)]}{'-' if keeps else ''}{tail}{glued}"
    return after.strip()
