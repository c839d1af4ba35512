"""Collects the blocks and marks of one document while a loader reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hmars.errors import EmptyInputError, InputError
from hmars.indexing.sources.limits import MAX_TEXT_CHARS, TABLE_PART_CHARS
from hmars.indexing.text_source import clean, is_blank
from hmars.model import Mark, SourceText

MAX_LABEL_CHARS = 80
_SPACE = re.compile(r"\s+")


class TextBuilder:
    """Text in reading order: blocks parted by a blank line, and marks at their starts."""

    def __init__(self, path: Path, title: str = "") -> None:
        self.path = path
        self.title = title
        self._parts: list[str] = []
        self._length = 0
        self._marks: list[Mark] = []
        self._warnings: list[str] = []
        self._headings: list[tuple[int, str]] = []
        self._in_list = False

    def item(self, text: str) -> None:
        """Add a list item: items stand on lines that follow each other."""
        in_list, self._in_list = self._in_list, False
        before = self._length
        self.block(text, end="\n")
        self._in_list = in_list or self._length > before

    def block(self, text: str, end: str = "\n\n") -> None:
        """Add a paragraph, a list item or a row. White space alone is not a block."""
        self._end_list()
        text = self._cleaned(text).rstrip()
        if is_blank(text):
            return
        self._length += len(text) + len(end)
        if self._length > MAX_TEXT_CHARS:
            raise InputError(
                f"{self.path} holds more than {MAX_TEXT_CHARS:,} characters of text: split it."
            )
        self._parts += (text, end)

    def heading(self, text: str, level: int) -> None:
        """Add a heading as a block; its path becomes the context of what follows."""
        line = one_line(self._cleaned(text))
        if not line:
            return
        self._end_list()
        self._headings = [entry for entry in self._headings if entry[0] < level]
        self._headings.append((level, line))
        self._mark(Mark(self._length, f"§ {shorten(line)}", self.path_of_headings, level=level))
        self.block(text)

    def place(self, label: str, context: str | None = None) -> None:
        """What follows stands at a place a human can find: a page, a slide, rows of a sheet."""
        self._end_list()
        known = self.path_of_headings if context is None else context
        self._mark(Mark(self._length, label, known, kind="place"))

    def chapter(self, text: str, level: int = 1) -> None:
        """A heading that is known from elsewhere (a table of contents) and not in the text."""
        line = one_line(self._cleaned(text))
        if line:
            self._end_list()
            self._headings = [entry for entry in self._headings if entry[0] < level]
            self._headings.append((level, line))
            self._mark(Mark(self._length, f"§ {shorten(line)}", self.path_of_headings, level=level))

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Add a table, in parts that each begin with its first row."""
        for lines in table_parts([row_line(row) for row in rows]):
            self.block("\n".join(lines))

    def warn(self, sentence: str) -> None:
        if sentence not in self._warnings:
            self._warnings.append(sentence)

    @property
    def path_of_headings(self) -> str:
        return " > ".join(shorten(line) for _, line in self._headings)

    @property
    def blank(self) -> bool:
        return not self._parts

    def build(self) -> SourceText:
        """The finished document.

        Raises:
            EmptyInputError: no block was added.
        """
        if self.blank:
            raise EmptyInputError(f"{self.path} holds no text.")
        text = "".join(self._parts).rstrip("\n") + "\n"
        return SourceText(
            text=text,
            source=str(self.path.absolute()),
            title=one_line(clean(self.title)[0]) or self.path.name,
            marks=tuple(mark for mark in self._marks if mark.start < len(text)),
            warnings=tuple(self._warnings),
        )

    def _end_list(self) -> None:
        if self._in_list:
            self._in_list = False
            self._parts.append("\n")
            self._length += 1

    def _cleaned(self, text: str) -> str:
        cleaned, warnings = clean(text)
        for warning in warnings:
            self.warn(warning)
        return cleaned

    def _mark(self, mark: Mark) -> None:
        """Add a mark; one of the same kind at the same point gives way to it."""
        while self._marks and self._marks[-1].start == mark.start:
            if self._marks[-1].kind != mark.kind:
                break
            before = self._marks.pop()
            if mark.kind == "heading":
                # A chapter and its first section begin together: it is an edge of the chapter.
                mark = replace(mark, level=min(before.level, mark.level))
        self._marks.append(mark)


def one_line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def shorten(line: str) -> str:
    return line if len(line) <= MAX_LABEL_CHARS else line[: MAX_LABEL_CHARS - 1].rstrip() + "…"


def row_line(row: Sequence[str]) -> str:
    """One row of a table on one line."""
    return " | ".join(one_line(cell) for cell in row).rstrip(" |") if row else ""


def part_size(header: str, limit: int = TABLE_PART_CHARS) -> int:
    """Characters of a part: enough that a long header row does not make up most of the text."""
    return max(limit, 5 * len(header))


def table_parts(lines: Sequence[str], limit: int = TABLE_PART_CHARS) -> list[list[str]]:
    """Split the lines of a table in parts of about `limit` characters, each under the header."""
    filled = [line for line in lines if line.strip(" |")]
    if not filled:
        return []
    header, parts = filled[0], [[filled[0]]]
    limit = part_size(header, limit)
    size = len(header)
    for line in filled[1:]:
        if size + len(line) > limit and len(parts[-1]) > 1:
            parts.append([header])
            size = len(header)
        parts[-1].append(line)
        size += len(line) + 1
    return parts


def exact_source(
    path: Path,
    text: str,
    headings: Sequence[tuple[int, int, str]] = (),
    title: str = "",
    warnings: Sequence[str] = (),
) -> SourceText:
    """A text that is kept as it stands, with headings as (start, level, title).

    Raises:
        EmptyInputError: nothing in it but white space.
    """
    if is_blank(text):
        raise EmptyInputError(f"{path} holds no text.")
    marks: list[Mark] = []
    above: list[tuple[int, str]] = []
    for start, level, line in headings:
        name = shorten(one_line(line))
        above = [*(entry for entry in above if entry[0] < level), (level, name)]
        context = " > ".join(entry[1] for entry in above)
        marks.append(Mark(start, f"§ {name}", context, level=level))
    return SourceText(
        text=text,
        source=str(path.absolute()),
        title=one_line(title) or path.name,
        marks=tuple(marks),
        warnings=tuple(warnings),
    )
