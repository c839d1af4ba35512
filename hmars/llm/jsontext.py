"""The JSON value in what a model wrote: fenced, wrapped in prose, slightly broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import json_repair

FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([A-Za-z0-9_+-]*)[^\n]*$", re.MULTILINE)
BRACKET = re.compile(r"[\[{]")
JSON_START = re.compile(r"""\{\s*["'}]|\[\s*[\[{"]""")
"""An opening bracket that prose would hardly have."""
MAX_STARTS = 60
"""How many opening brackets in prose are tried; a reply with more is not worth the time."""


class NoJson(Exception):
    """There is no complete JSON object or array; the message tells the model what is wrong."""


@dataclass(frozen=True, slots=True)
class Found:
    """A value and what had to be done to get at it."""

    value: Any
    paths: tuple[str, ...] = ()


def find_json(text: str) -> Found:
    """The JSON object or array in `text`.

    An incomplete one is never completed: what is missing might be what matters.

    Raises:
        NoJson: there is none, or it breaks off.
    """
    stripped = text.strip("\ufeff \t\r\n")
    if not stripped:
        raise NoJson("the reply was empty")
    value = _strict(stripped)
    if value is not None:
        return Found(value)
    blocks = list(_fenced(stripped))
    for block in blocks:
        value = _strict(block)
        if value is not None:
            return Found(value, ("fenced",))
    value = _longest_inside(stripped)
    if value is not None:
        return Found(value, ("prose",))
    for candidate in [*blocks, stripped]:
        value = _repaired(candidate)
        if value is not None:
            return Found(value, ("repaired",))
    if not BRACKET.search(stripped):
        raise NoJson("the reply holds no JSON")
    raise NoJson("the JSON is broken, or ends before it is complete")


def _strict(text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        value: Any = json.loads(text.strip("\ufeff \t\r\n"))
    except (ValueError, RecursionError):  # ValueError also for numbers of thousands of digits
        return None
    return cast(Any, value) if isinstance(value, dict | list) else None


def _fenced(text: str) -> Iterator[str]:
    """Contents of fenced blocks, those marked as JSON first. A last one may be unclosed.

    A fence stands at the start of a line; in valid JSON no string has a line break, so backticks
    inside strings are not taken for fences.
    """
    blocks: list[tuple[str, str]] = []
    opened: re.Match[str] | None = None
    for fence in FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2]:
            blocks.append((opened[2].lower(), text[opened.end() : fence.start()]))
            opened = None
    if opened is not None:
        blocks.append((opened[2].lower(), text[opened.end() :]))
    yield from (content for language, content in blocks if language.startswith("json"))
    yield from (content for language, content in blocks if not language.startswith("json"))


def _longest_inside(text: str) -> Any:  # noqa: ANN401 - any JSON
    """The longest complete object in prose, or the longest array where there is no object."""
    decoder = json.JSONDecoder()
    best: Any = None
    best_rank = (False, 0)
    position = 0
    for _ in range(MAX_STARTS):
        start = BRACKET.search(text, position)
        if start is None:
            break
        try:
            value, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            if JSON_START.match(text, start.start()):
                break  # the reply itself, broken: a part of it is not the answer
            position = start.end()
            continue
        rank = (isinstance(value, dict), end - start.start())
        if value and rank > best_rank:
            best, best_rank = value, rank
        position = end
    return best


def _repaired(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Trailing commas, single quotes, comments and the like put right, if the end is there."""
    start = BRACKET.search(text)
    if start is None:
        return None
    close = "}" if start[0] == "{" else "]"
    end = text.rfind(close)
    candidate = text[start.start() : end + 1]
    if end < start.start() or not _is_closed(candidate):
        return None
    try:
        value: Any = json_repair.loads(candidate)
    except (ValueError, RecursionError):
        return None
    return cast(Any, value) if value and isinstance(value, dict | list) else None


def _is_closed(text: str) -> bool:
    """Every bracket outside double-quoted strings is closed, and so is the last string."""
    depth, quoted, escaped = 0, False, False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = quoted
        elif character == '"':
            quoted = not quoted
        elif not quoted and character in "[{":
            depth += 1
        elif not quoted and character in "]}":
            depth -= 1
    return depth == 0 and not quoted
