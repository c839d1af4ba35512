"""Is this in the text, and where? Quotations and names are found tolerantly, shown exactly.

Offsets are code points of the original text, half-open: what is shown is always `text[start:end]`,
never the words that were looked for. What is tolerated: case, width and compatibility forms,
composed or decomposed accents, white space, typographic quotes and dashes, zero-width characters,
words hyphenated at the end of a line. Case folding makes 'Straße' equal to 'STRASSE'; a name
without its accent is another name ('Zoe' does not mention 'Zoë'; `spelling` finds it all the same).
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from dataclasses import dataclass
from functools import cached_property

from hmars.lexical.terms import UNSPACED

Span = tuple[int, int]

SHORTEST_EXACT = 2
"""Letters and digits a quotation must have to be looked for at all."""
SHORTEST_TOLERANT = 4
"""Letters and digits a quotation must have to be found by more than its exact characters."""
SHORTEST_PART = 12
"""Letters and digits that one side of an ellipsis must have to stand for the quotation."""

_SINGLE_QUOTES = "‘’‚‛′`´ʼ‹›"
_DOUBLE_QUOTES = "“”„‟″«»"
_DASHES = "‐‑‒–—―−﹘﹣－"
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u180e"
_OUTER = " \t\r\n\"'“”‘’«»„`*_"
_ELLIPSIS = re.compile(r"\s*(?:\[\s*(?:\.{3,}|…)\s*\]|\(\s*(?:\.{3,}|…)\s*\)|\.{3,}|…)\s*")
_UNSPACED_SIGN = re.compile(f"[{UNSPACED}]")


def _fold_sign(sign: str) -> str:
    """One code point as it is compared; empty where it does not count."""
    if sign in _INVISIBLE:
        return ""
    if sign.isspace():
        return " "
    if sign in _SINGLE_QUOTES:
        return "'"
    if sign in _DOUBLE_QUOTES:
        return '"'
    if sign in _DASHES:
        return "-"
    # Upper case first: 'ı' and 'ſ' have capitals of their own that fold to 'i' and 's'.
    cased = unicodedata.normalize("NFKD", sign).upper().casefold()
    folded = unicodedata.normalize("NFKD", cased)
    if folded.isspace():
        return " "
    # 'ŉ' falls into an apostrophe and a letter.
    return "".join("'" if part in _SINGLE_QUOTES else part for part in folded)


@dataclass(frozen=True)
class _Folded:
    """Folded text with, for each of its characters, where it comes from."""

    text: str
    origin: array[int]

    def original(self, start: int, end: int) -> Span:
        return self.origin[start], self.origin[end - 1] + 1

    def without(self, signs: str) -> _Folded:
        kept = [at for at, sign in enumerate(self.text) if sign not in signs]
        return _Folded(
            "".join([self.text[at] for at in kept]),
            array("q", [self.origin[at] for at in kept]),
        )

    def without_accents(self) -> _Folded:
        kept = [at for at, sign in enumerate(self.text) if not unicodedata.combining(sign)]
        return _Folded(
            "".join([self.text[at] for at in kept]),
            array("q", [self.origin[at] for at in kept]),
        )


def _fold(text: str) -> _Folded:
    table = {sign: _fold_sign(sign) for sign in set(text)}
    out: list[str] = []
    origin = array("q")
    for at, sign in enumerate(text):
        folded = table[sign]
        if folded == " ":
            if out and out[-1] == " ":
                continue
            if sign == "\n" and len(out) > 1 and out[-1] == "-" and out[-2].isalpha():
                # A word hyphenated at the end of a line; a compound is found without its hyphen.
                out.pop()
                origin.pop()
                out.append("\n")
                origin.append(at)
                continue
            if out and out[-1] == "\n":
                continue
        for part in folded:
            out.append(part)
            origin.append(at)
    kept = [at for at, part in enumerate(out) if part != "\n"]
    if len(kept) == len(out):
        return _Folded("".join(out), origin)
    return _Folded("".join([out[at] for at in kept]), array("q", [origin[at] for at in kept]))


class Grounder:
    """One text, folded once, for many look-ups."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _spaced(self) -> _Folded:
        return _fold(self.text)

    @cached_property
    def _dense(self) -> _Folded:
        """Without white space and hyphens: PDF text breaks words in odd places."""
        return self._spaced.without(" -")

    @cached_property
    def _plain(self) -> _Folded:
        return self._spaced.without_accents()

    def find(self, quote: str) -> Span | None:
        """Where a quotation stands, first occurrence; `None` where it does not.

        A quotation that leaves something out ("A ... B") is anchored to its longest part that is
        in the text.
        """
        quote = quote.strip(_OUTER + _INVISIBLE) if quote.strip() != quote else quote
        for candidate in dict.fromkeys((quote, quote.strip(_OUTER))):
            if span := self._find_whole(candidate):
                return span
        parts = [part for part in _ELLIPSIS.split(quote) if _weight(part) >= SHORTEST_PART]
        if len(_ELLIPSIS.split(quote)) > 1:
            for part in sorted(parts, key=_weight, reverse=True):
                if span := self._find_whole(part.strip(_OUTER)):
                    return span
        bare = quote.strip(_OUTER).rstrip(".,;:!?…" + _OUTER)
        return self._find_whole(bare) if bare != quote else None

    def mentions(self, name: str) -> bool:
        """Whether a name occurs as whole words, whatever its case, white space or composition."""
        return self._find_words(self._spaced, _fold(name).text.strip()) is not None

    def spelling(self, name: str) -> str | None:
        """The text's own spelling of a name; accents that are missing are forgiven here."""
        span = self._find_words(self._spaced, _fold(name).text.strip())
        if span is None:
            plain = _fold(name).without_accents().text.strip()
            span = self._find_words(self._plain, plain)
        return None if span is None else self.text[slice(*span)]

    def _find_whole(self, quote: str) -> Span | None:
        weight = _weight(quote)
        if weight < SHORTEST_EXACT:
            return None
        if (at := self.text.find(quote)) >= 0:
            return at, at + len(quote)
        if weight < SHORTEST_TOLERANT:
            return None
        folded = _fold(quote)
        stages = [
            (lambda: self._spaced, folded.text.strip()),
            (lambda: self._dense, folded.without(" -").text),
        ]
        if weight >= SHORTEST_PART:
            stages.append((lambda: self._plain, folded.without_accents().text.strip()))
        for hay_of, needle in stages:
            hay = hay_of()
            if needle and (at := hay.text.find(needle)) >= 0:
                return self._with_marks(hay.original(at, at + len(needle)))
        return None

    def _with_marks(self, span: Span) -> Span:
        """Take in the marks and joiners that belong to the last character."""
        start, end = span
        while end < len(self.text) and unicodedata.combining(self.text[end]):
            end += 1
        return start, end

    def _find_words(self, hay: _Folded, needle: str) -> Span | None:
        if not needle:
            return None
        at = hay.text.find(needle)
        while at >= 0:
            end = at + len(needle)
            if _edge(hay.text, at) and _edge(hay.text, end):
                return self._with_marks(hay.original(at, end))
            at = hay.text.find(needle, at + 1)
        return None


def find_quote(text: str, quote: str) -> Span | None:
    """Where `quote` stands in `text`; see `Grounder.find`, which is faster for many quotations."""
    if (
        _weight(quote) >= SHORTEST_EXACT
        and (at := text.find(quote)) >= 0
        and quote == quote.strip()
    ):
        return at, at + len(quote)
    return Grounder(text).find(quote)


def mentions(text: str, name: str) -> bool:
    """Whether `name` occurs in `text`; see `Grounder.mentions`, which is faster for many names."""
    return Grounder(text).mentions(name)


def entity_key(name: str) -> str:
    """Equal for spellings of one name: case, white space, hyphens and composition do not count.

    'System Admin', 'system-admin' and 'SystemAdmin' are one; 'Zoë' and 'Zoe' are two.
    """
    return re.sub(r"(?:'s)?\Z|[\s\-_]+", "", _fold(name).text.strip(" .,;:'\"()[]"))


def _weight(text: str) -> int:
    return sum(sign.isalnum() for sign in text)


def _edge(text: str, at: int) -> bool:
    """Whether a word may begin or end between two characters."""
    if at == 0 or at == len(text):
        return True
    before, after = text[at - 1], text[at]
    if not (_in_word(before) and _in_word(after)):
        return True
    return bool(_UNSPACED_SIGN.match(before) or _UNSPACED_SIGN.match(after))


def _in_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_" or unicodedata.combining(sign) > 0
