"""Terms: what two stretches of text have in common when a person would call it the same word.

Terms are for matching only and never shown. Folding: Unicode NFKC, case folding, removal of Latin,
Greek, Cyrillic and Hebrew diacritics and of Arabic vowel marks, English stemming. Scripts that are
written without spaces give overlapping pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise
from typing import Protocol, cast

import snowballstemmer

from hmars.lexical.irregular import IRREGULAR
from hmars.lexical.stopwords import STOP_WORDS


def _marks() -> str:
    """Combining marks up to the Myanmar block and beyond Tibetan, as ranges of a character class.

    `\\w` leaves them out, which would cut Hindi, Thai or decomposed Latin words in pieces.
    """
    ranges: list[list[int]] = []
    for code in range(0x300, 0x1B00):
        if unicodedata.category(chr(code))[0] != "M":
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)


JOINERS = "\u00ad\u200b-\u200d\u2060\ufeff"
WORD_SIGN = rf"[\w{_marks()}\u3099\u309a{JOINERS}]"
"""One character of a word, as a class of a regular expression."""
# A comma joins only the digit groups of a number; the other joiners need a word on both sides.
_RAW = re.compile(rf"{WORD_SIGN}+(?:(?:[.:/'’\-‐‑]|,(?=\d{{3}}(?!\d))){WORD_SIGN}+)*")

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Ranges of scripts whose words are not set apart by spaces (Korean too: its particles are not)."""
_RUN = re.compile(rf"[{UNSPACED}{_marks()}\u3099\u309a]+|[^{UNSPACED}]+")
_UNSPACED_START = re.compile(rf"[{UNSPACED}]")
_JOINTS = re.compile(r"[.:/'’\-‐‑,]+")
_INNER = re.compile(r"_+|(?<=[a-z])(?=[A-Z])")
_NUMERIC = re.compile(r"\d+(?:\.\d+)*\Z")
_DROPPED_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0640]")
_JOINER = re.compile(f"[{JOINERS}]")
_ENGLISH = re.compile(r"[a-z]{3,40}\Z")
_CONTRACTION = re.compile(r"(?i)(?:n['’]t|['’](?:s|d|m|ll|re|ve))\Z")
_CACHED_LENGTH = 40


def fold(word: str) -> str:
    """The word as it is compared: compatibility forms, case and vowel marks removed."""
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKC", _JOINER.sub("", word)).casefold()
    bare = _DROPPED_MARKS.sub("", unicodedata.normalize("NFD", folded))
    return unicodedata.normalize("NFC", bare)


class _Stemmer(Protocol):
    """What snowballstemmer, which ships no types, gives."""

    def stemWord(self, word: str) -> str: ...


class Terms:
    """Extracts terms; remembers the words it has seen, so keep one for a run over many texts."""

    def __init__(self) -> None:
        self._stemmer = cast(_Stemmer, snowballstemmer.stemmer("english"))
        self._seen: dict[str, tuple[str, ...]] = {}
        self._stems: dict[str, str] = {}

    def of(self, text: str) -> list[str]:
        """All terms of the text in order, stop words included."""
        found: list[str] = []
        seen = self._seen
        for raw in _RAW.findall(text):
            terms = seen.get(raw)
            if terms is None:
                terms = tuple(self._expand(raw))
                if len(raw) <= _CACHED_LENGTH:
                    seen[raw] = terms
            found.extend(terms)
        return found

    def content(self, text: str) -> list[str]:
        """The distinct terms that carry the meaning of a question, in order.

        A text of stop words only ("who is he?") gives its terms all the same.
        """
        found: dict[str, None] = {}
        for raw in _RAW.findall(text):
            if fold(_CONTRACTION.sub("", raw)) not in STOP_WORDS and fold(raw) not in STOP_WORDS:
                found.update(dict.fromkeys(self._expand(raw)))
        kept = [term for term in found if term not in STOP_WORDS]
        return kept or list(dict.fromkeys(self.of(text)))

    def _expand(self, raw: str) -> Iterable[str]:
        for run in _RUN.findall(raw):
            if _UNSPACED_START.match(run):
                yield from _pairs(fold(run))
            else:
                yield from self._word(run)

    def _word(self, raw: str) -> Iterable[str]:
        """A compound gives its parts and, where it is a name of its own, the whole."""
        bare = _CONTRACTION.sub("", raw)
        whole = fold(bare)
        number = whole.replace(",", "")
        if _NUMERIC.match(number):
            yield number
            return
        pieces = [piece for piece in _JOINTS.split(bare) if piece]
        if len(pieces) > 1 and ("." in whole or any(sign.isdigit() for sign in whole)):
            yield whole
        for piece in pieces:
            parts = [part for part in _INNER.split(piece) if part]
            if len(parts) > 1 or piece.strip("_") != piece:
                yield fold(piece)
            for part in parts:
                yield self._stem(fold(part))

    def _stem(self, word: str) -> str:
        if not _ENGLISH.match(word):
            return word
        if word not in self._stems:
            self._stems[word] = self._stemmer.stemWord(IRREGULAR.get(word, word))
        return self._stems[word]


def _pairs(run: str) -> Iterable[str]:
    if len(run) == 1:
        yield run
    for first, second in pairwise(run):
        yield first + second
