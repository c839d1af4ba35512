"""Segments of text of one PDF page, with boxes, from pdfium's glyphs."""

from __future__ import annotations

import ctypes
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from hmars.indexing.sources.pdf_layout import Segment

MAX_PAGE_GLYPHS = 400_000
"""More glyphs than this on one page are noise or an attack; the rest of the page is left out."""
_HYPHEN = "\x02"
"""pdfium's sign for a hyphen at the end of a line."""
_UNMAPPED = "\ufffe"
"""What pdfium writes for that sign and for glyphs it does not know."""
_BREAKS = frozenset("\n\r\x02")
_TOKEN = re.compile("[^\0\t\n\r \xa0\u3000\x02]+\x02?|[\n\r\x02]")


class PdfPage(Protocol):
    """What is asked of `pypdfium2.PdfPage`."""

    def get_bbox(self) -> tuple[float, float, float, float]: ...


class PdfTextPage(Protocol):
    """What is asked of `pypdfium2.PdfTextPage`."""

    @property
    def raw(self) -> object: ...

    def count_chars(self) -> int: ...


@dataclass(frozen=True, slots=True)
class PageGlyphs:
    """Segments that run the way most of the page runs, and the rest (stamps in the margin)."""

    segments: tuple[Segment, ...]
    sideways: str
    height: float
    """Of the page as it is held, in points."""
    cut: bool
    lone_surrogates: int


@dataclass(frozen=True, slots=True)
class _Word:
    x0: float
    y0: float
    x1: float
    y1: float
    text: str
    quarter: int
    """Quarter turns of the text, to the left."""
    new_line: bool


def page_glyphs(page: PdfPage, textpage: PdfTextPage) -> PageGlyphs:
    """Read one page; boxes are in points as a reader holds the page, y growing downwards."""
    reader = _Reader(textpage)
    words = list(reader.words())
    quarters = Counter[int]()
    for word in words:
        quarters[word.quarter] += len(word.text)
    main = quarters.most_common(1)[0][0] if quarters else 0
    box = page.get_bbox()
    upright = [_turn(word, box, main) for word in words if word.quarter == main]
    sideways = " ".join(word.text for word in words if word.quarter != main)
    height = box[2] - box[0] if main % 2 else box[3] - box[1]
    segments = tuple(_segments(upright))
    return PageGlyphs(segments, sideways, height, reader.cut, reader.lone_surrogates)


def _turn(word: _Word, box: tuple[float, float, float, float], quarter: int) -> _Word:
    """The word with its box as seen with the page turned so that the text is upright."""
    left, bottom, right, top = box
    x0, x1, y0, y1 = word.x0 - left, word.x1 - left, word.y0 - bottom, word.y1 - bottom
    width, height = right - left, top - bottom
    if quarter == 0:
        turned = x0, height - y1, x1, height - y0
    elif quarter == 1:
        turned = y0, x0, y1, x1
    elif quarter == 2:
        turned = width - x1, y0, width - x0, y1
    else:
        turned = height - y1, width - x1, height - y0, width - x0
    return _Word(*turned, word.text, 0, word.new_line)


def _segments(words: Sequence[_Word]) -> Iterator[Segment]:
    line: list[_Word] = []
    for word in words:
        if line and not _runs_on(line[-1], word):
            yield _segment(line)
            line = []
        line.append(word)
    if line:
        yield _segment(line)


def _segment(line: Sequence[_Word]) -> Segment:
    return Segment(
        min(word.x0 for word in line),
        min(word.y0 for word in line),
        max(word.x1 for word in line),
        max(word.y1 for word in line),
        " ".join(word.text for word in line),
    )


def _runs_on(before: _Word, word: _Word) -> bool:
    """The word continues the segment: same height, to the right, without a wide gap."""
    if word.new_line:
        return False
    size = max(min(before.y1 - before.y0, word.y1 - word.y0), 1.0)
    overlap = min(before.y1, word.y1) - max(before.y0, word.y0)
    return overlap >= 0.3 * size and -0.5 * size <= word.x0 - before.x1 <= 0.9 * size


class _Reader:
    """Walks the glyphs once; asks for boxes only at the ends of words (each ask is slow)."""

    def __init__(self, textpage: PdfTextPage) -> None:
        pdfium: Any = import_module("pypdfium2.raw")
        self._pdfium = pdfium
        self._handle = textpage.raw
        self._loose = pdfium.FS_RECTF()
        self._edges = [ctypes.c_double() for _ in range(4)]
        count = textpage.count_chars()
        self.cut = count > MAX_PAGE_GLYPHS
        self._count = min(count, MAX_PAGE_GLYPHS)
        self.lone_surrogates = 0
        self._quarter = 0

    def words(self) -> Iterator[_Word]:
        new_line = True
        for token in _TOKEN.finditer(self._units()):
            text = token.group()
            if text in _BREAKS:
                new_line = True
                continue
            divided = text.endswith(_HYPHEN)
            shown = text[:-1] + "-" if divided else text
            yield self._word(self._whole(shown), token.start(), token.end() - 1, new_line)
            new_line = divided

    def _units(self) -> str:
        """One character for each glyph, so that places in it are places of glyphs."""
        count, unicode_at = self._count, self._pdfium.FPDFText_GetUnicode
        buffer = (ctypes.c_ushort * (count + 1))()
        written = self._pdfium.FPDFText_GetText(self._handle, 0, count, buffer)
        if written - 1 != count:  # some glyphs have no text: ask for each alone
            return "".join(chr(unicode_at(self._handle, place)) for place in range(count))
        text = "".join(map(chr, buffer[:count]))
        if _UNMAPPED not in text:
            return text
        return "".join(
            chr(unicode_at(self._handle, place)) if char == _UNMAPPED else char
            for place, char in enumerate(text)
        )

    def _word(self, text: str, first: int, last: int, new_line: bool) -> _Word:
        if new_line:
            angle: float = self._pdfium.FPDFText_GetCharAngle(self._handle, first)
            self._quarter = -round(angle / (math.pi / 2)) % 4 if angle > 0 else 0
        place = self._tight_box if self._quarter else self._loose_box
        a, b = place(first), place(last)
        return _Word(
            min(a[0], b[0]),
            min(a[1], b[1]),
            max(a[2], b[2]),
            max(a[3], b[3]),
            text,
            self._quarter,
            new_line,
        )

    def _loose_box(self, place: int) -> tuple[float, float, float, float]:
        """Left, bottom, right, top by the font's height: the same for all glyphs of a line."""
        box = self._loose
        self._pdfium.FPDFText_GetLooseCharBox(self._handle, place, ctypes.byref(box))
        return box.left, box.bottom, box.right, box.top

    def _tight_box(self, place: int) -> tuple[float, float, float, float]:
        left, right, bottom, top = self._edges
        self._pdfium.FPDFText_GetCharBox(
            self._handle, place, *(ctypes.byref(edge) for edge in (left, right, bottom, top))
        )
        return left.value, bottom.value, right.value, top.value

    def _whole(self, text: str) -> str:
        """A pair of halves becomes one character, a half alone the replacement character."""
        if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
            return text
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        self.lone_surrogates += whole.count("\ufffd") - text.count("\ufffd")
        return whole
