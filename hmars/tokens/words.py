"""The default tokenizer: no model, no download, and the same result on every machine."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hmars.tokens.base import Starts

BLOCK = 1 << 20
"""Code points classified at a time: bounds the memory, not the result."""

SPACE, NEWLINE, DIGIT, PUNCTUATION, IDEOGRAPH, MARK = range(6)
LATIN, ALPHABET, SEMITIC, ABUGIDA, SYLLABARY = range(6, 11)
CHUNK = np.array([16, 4, 1, 3, 1, 1, 8, 4, 3, 1, 2], dtype=np.uint32)
"""The longest token of each kind, in code points (a joined space comes on top)."""
JOINED = np.array([False, False, False, True, False, False, True, True, True, True, True])
"""Kinds that take a single space before them into their first token."""

_SCRIPTS: tuple[tuple[int, int, int], ...] = (
    (0x0000, 0x024F, LATIN),
    (0x0250, 0x058F, ALPHABET),
    (0x0590, 0x08FF, SEMITIC),
    (0x0900, 0x0DFF, ABUGIDA),
    (0x0E00, 0x0FFF, SYLLABARY),
    (0x1000, 0x10FF, ABUGIDA),
    (0x1100, 0x11FF, IDEOGRAPH),
    (0x1200, 0x1DFF, ABUGIDA),
    (0x1E00, 0x1EFF, LATIN),
    (0x1F00, 0x1FFF, ALPHABET),
    (0x2000, 0x2DFF, ALPHABET),
    (0x2E00, 0x9FFF, IDEOGRAPH),
    (0xA000, 0xABFF, ABUGIDA),
    (0xAC00, 0xFAFF, IDEOGRAPH),
    (0xFB00, 0xFDFF, SEMITIC),
    (0xFE00, 0xFFFF, IDEOGRAPH),
)
"""Letters by block. Everything above the Basic Multilingual Plane counts one by one."""


class WordTokenizer:
    """Words and pieces of words, so that one token is roughly one BPE token (Qwen: within 20 %).

    A token is: up to 8 Latin letters, 4 of another alphabet, 3 Arabic or Hebrew letters, 2 Thai
    or Lao letters; one ideograph, syllable, Indic letter, digit, combining mark or emoji; up to 3
    marks of punctuation, 4 line ends or 16 other blanks. A single space belongs to the word after
    it. Kinds of characters come from Unicode 3.2, which Python keeps, so that counts do not depend
    on the Python version. Where a token begins depends on nothing but the token and the character
    before it, so slices cut at token starts count exactly what they counted in the whole.
    """

    @property
    def identity(self) -> str:
        return "words/1"

    @property
    def exact_slices(self) -> bool:
        return True

    def starts(self, text: str) -> Starts:
        found: list[Starts] = []
        begin = 0
        while begin < len(text):
            block = text[begin : begin + BLOCK]
            starts = _block_starts(block)
            if begin + len(block) < len(text):
                # The last token may go on behind the block: it begins the next one.
                cut = int(starts[-1])
                starts = starts[:-1]
            else:
                cut = len(block)
            found.append(starts + np.uint32(begin))
            begin += cut
        return np.concatenate(found) if found else np.empty(0, dtype=np.uint32)

    def count(self, text: str) -> int:
        return len(_block_starts(text)) if len(text) <= BLOCK else len(self.starts(text))


def _block_starts(text: str) -> Starts:
    if not text:
        return np.empty(0, dtype=np.uint32)
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    table = _kinds()
    kinds = table[np.minimum(points, len(table) - 1)]
    places = np.arange(len(points), dtype=np.uint32)
    begins_run = np.empty(len(points), dtype=bool)
    begins_run[0] = True
    np.not_equal(kinds[1:], kinds[:-1], out=begins_run[1:])
    run_start = np.maximum.accumulate(np.where(begins_run, places, np.uint32(0)))
    begins = (places - run_start) % CHUNK[kinds] == 0
    joins = (points[:-1] == 0x20) & begins_run[1:] & JOINED[kinds[1:]]
    begins[:-1] |= joins
    begins[1:] &= ~joins
    return np.flatnonzero(begins).astype(np.uint32)


@cache
def _kinds() -> NDArray[np.uint8]:
    """Kind of every code point of the Basic Multilingual Plane; the last entry is for the rest."""
    kinds = np.full(0x10001, IDEOGRAPH, dtype=np.uint8)
    for first, last, letters in _SCRIPTS:
        kinds[first : last + 1] = [_kind(point, letters) for point in range(first, last + 1)]
    kinds[_points("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")] = NEWLINE
    kinds[_points("\t")] = SPACE
    return kinds


def _points(characters: Iterable[str]) -> list[int]:
    return [ord(character) for character in characters]


def _kind(point: int, letters: int) -> int:
    category = unicodedata.ucd_3_2_0.category(chr(point))
    if category[0] == "Z":
        return SPACE
    if category[0] == "N":
        return DIGIT
    if category[0] in "PS":
        return PUNCTUATION if point < 0x2100 or point >= 0x2E00 else IDEOGRAPH
    if category in ("Cc", "Cf"):
        return MARK
    if category[0] == "M" and letters != LATIN and letters != ALPHABET:
        return MARK
    return letters
