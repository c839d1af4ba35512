"""Where a text must not be cut, because a reader sees one character."""

from __future__ import annotations

import unicodedata

ZERO_WIDTH_JOINER = "\u200d"
_EXTENDING = frozenset("\u200c\u200d\uff9e\uff9f")


def breaks_grapheme(text: str, position: int, since: int = 0) -> bool:
    """Whether a cut before `position` would part one visible character (after Unicode UAX 29).

    Looks at combining marks, emoji sequences, flags, Hangul jamo and CRLF. `since` is a place
    known to be a good cut; nothing before it is looked at.
    """
    if position <= since or position >= len(text):
        return False
    before, after = text[position - 1], text[position]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    if before in "\r\n":
        return False
    return (
        before == ZERO_WIDTH_JOINER
        or _extends(after)
        or (_is_flag_letter(after) and _flag_letters_before(text, position, since) % 2 == 1)
        or _is_jamo_pair(before, after)
    )


def _extends(character: str) -> bool:
    return (
        character in _EXTENDING
        or unicodedata.category(character) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
    )


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, position: int, since: int) -> int:
    first = position
    while first > since and _is_flag_letter(text[first - 1]):
        first -= 1
    return position - first


def _is_jamo_pair(before: str, after: str) -> bool:
    """A trailing vowel or consonant, or a syllable that goes on from a leading consonant."""
    if "\u1160" <= after <= "\u11ff" or "\ud7b0" <= after <= "\ud7fb":
        return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7fb"
    starts_syllable = "\u1100" <= after <= "\u115f" or "\uac00" <= after <= "\ud7a3"
    return starts_syllable and "\u1100" <= before <= "\u115f"
