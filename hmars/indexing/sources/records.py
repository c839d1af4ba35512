"""JSON and JSON Lines: the text as it stands, with its escapes written out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from hmars.indexing.sources.builder import exact_source, one_line, shorten
from hmars.indexing.sources.files import InputFile
from hmars.indexing.sources.reading import Reading, read_text
from hmars.model import Mark, SourceText

_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)((?:\\u[0-9a-fA-F]{4})+)")
_SPACE = re.compile(r"[ \t\r\n]*")
_MIN_UNESCAPED = 0x20
_KEPT = frozenset('"\\')
_MAX_ITEMS = 200_000


def load_json(file: InputFile) -> SourceText:
    """A JSON file; its first level gives the marks: keys, or the numbers of items."""
    text, warnings = _written_out(read_text(file))
    marks: tuple[Mark, ...] = ()
    try:
        marks = tuple(_first_level(text))
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        warnings.append(f"Not valid JSON ({reason}): kept as plain text.")
    found = exact_source(file.path, text, warnings=warnings)
    return replace(found, marks=marks)


def load_jsonl(file: InputFile) -> SourceText:
    """One record a line; pages are named by their lines."""
    text, warnings = _written_out(read_text(file))
    broken = 0
    for line in text.splitlines():
        try:
            if line.strip():
                json.loads(line)
        except (ValueError, RecursionError):
            broken += 1
    if broken:
        warnings.append(f"{broken} lines are not valid JSON: kept as they are.")
    return exact_source(file.path, text, warnings=warnings)


def _written_out(found: Reading) -> tuple[str, list[str]]:
    """`\\u00e9` as é, so that words can be found; escapes that JSON needs stay."""
    lone = 0

    def replaced(match: re.Match[str]) -> str:
        nonlocal lone
        units = bytes.fromhex("".join(match[2].split("\\u")))
        found = units.decode("utf-16-be", "replace")
        lone += found.count("\ufffd") - match[2].lower().count("\\ufffd")
        return match[1] + "".join(
            f"\\u{ord(char):04x}" if char in _KEPT or ord(char) < _MIN_UNESCAPED else char
            for char in found
        )

    written = _ESCAPE.sub(replaced, found.text)
    problem = f"{lone} halves of surrogate pairs replaced by U+FFFD."
    return written, [*found.warnings, problem] if lone else list(found.warnings)


def _first_level(text: str) -> Iterator[Mark]:
    """A mark at each value of the outermost object or array.

    Raises:
        ValueError: not valid JSON.
    """
    decoder = json.JSONDecoder()
    place = _skip(text, 0)
    opening = text[place : place + 1]
    if opening not in ("{", "["):
        decoder.raw_decode(text, place)
        return
    closing = "}" if opening == "{" else "]"
    place = _skip(text, place + 1)
    number = 0
    while text[place : place + 1] != closing:
        number += 1
        start, key = place, ""
        if opening == "{":
            key, place = _key(decoder, text, place)
        _, place = decoder.raw_decode(text, place)
        if number <= _MAX_ITEMS:
            yield _mark(start, key, number)
        place = _skip(text, place)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
        elif text[place : place + 1] != closing:
            raise ValueError(f"Expecting ',' or '{closing}': char {place}")
    if text[place + 1 :].strip():
        raise ValueError(f"Extra data: char {place + 1}")


def _key(decoder: json.JSONDecoder, text: str, place: int) -> tuple[str, int]:
    key, place = decoder.raw_decode(text, place)
    place = _skip(text, place)
    if not isinstance(key, str) or text[place : place + 1] != ":":
        raise ValueError(f"Expecting a key: char {place}")
    return key, _skip(text, place + 1)


def _mark(start: int, key: str, number: int) -> Mark:
    if key:
        name = shorten(one_line(key))
        return Mark(start, f"§ {name}", name)
    return Mark(start, f"item {number}", kind="place")


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place
