"""Headings of plain text: Markdown `#`, and lines underlined with = - * ~ or ^."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hmars.model import Mark

LONGEST_TITLE = 160
"""Characters; a longer line over an underline is a paragraph over a rule."""

_CANDIDATE = re.compile(
    r"""
    (?:\A|\n)[ ]{0,3}
    (?: (?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)
      | (?P<hashes>\#{1,6})[ \t]+(?P<title>[^\n]*)
      | (?P<underline>={3,}|-{3,}|\*{3,}|\^{3,})[ \t]*(?=\r?\n|\r?\Z)
    )
    """,
    re.VERBOSE,
)
_CLOSING_HASHES = re.compile(r"(?:^|[ \t]+)#+\s*$")
_NO_TITLE = re.compile(r"[>|+*-]\s|\d+[.)]\s|\||[=*^-]{3,}$")
_MARKDOWN_ORDER = "=-~^"
_PYTHON_ORDER = "*=-~^"
"""Python's documentation underlines its chapters with asterisks."""


@dataclass(frozen=True, slots=True)
class _Heading:
    start: int
    title: str
    style: str
    """`#` to `######`, or the character of the underline."""


def headings(text: str) -> tuple[Mark, ...]:
    """A mark for each heading line, labelled with its path: `§ Statements > The if statement`.

    `#` inside code fences is no heading; an underline counts below a single line that stands alone.
    """
    found = list(_headings(text))
    order = _PYTHON_ORDER if any(heading.style == "*" for heading in found) else _MARKDOWN_ORDER
    path: list[tuple[int, str]] = []
    marks: list[Mark] = []
    for heading in found:
        style = heading.style
        level = len(style) if style[0] == "#" else order.index(style) + 1
        path = [entry for entry in path if entry[0] < level] + [(level, heading.title)]
        context = " > ".join(title for _, title in path)
        marks.append(Mark(heading.start, f"§ {context}", context, "heading", level))
    return tuple(marks)


def _headings(text: str) -> Iterator[_Heading]:
    fence = ""
    for match in _CANDIDATE.finditer(text):
        opening = match["fence"]
        if opening:
            bare = not match["info"].strip()
            title = _underlined(text, match.start(), opening) if bare and not fence else None
            if title and opening[0] == "~":
                yield title
            elif not fence:
                fence = opening
            elif opening.startswith(fence) and bare:
                fence = ""
        elif fence:
            continue
        elif match["hashes"]:
            words = _CLOSING_HASHES.sub("", match["title"]).strip()
            start = match.start() + (text[match.start()] == "\n")
            if words:
                yield _Heading(start, _short(words), match["hashes"])
        else:
            title = _underlined(text, match.start(), match["underline"])
            if title:
                yield title


def _underlined(text: str, line_end: int, underline: str) -> _Heading | None:
    start = text.rfind("\n", 0, line_end) + 1
    title = text[start:line_end].strip()
    before = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : start].strip()
    long_enough = underline[0] in "=-" or len(underline) >= len(title)
    if before or not title or len(title) > LONGEST_TITLE or not long_enough:
        return None
    return None if _NO_TITLE.match(title) else _Heading(start, _short(title), underline[0])


def _short(title: str) -> str:
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…"
