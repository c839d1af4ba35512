"""Texts that are kept as they stand: code, LaTeX, reStructuredText, XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hmars.indexing.sources.builder import exact_source
from hmars.indexing.sources.files import InputFile
from hmars.indexing.sources.reading import read_markup, read_text
from hmars.indexing.text_source import text_source
from hmars.model import SourceText

_LATEX_LEVELS = {
    "part": 1,
    "chapter": 2,
    "section": 3,
    "subsection": 4,
    "subsubsection": 5,
    "paragraph": 6,
}
_LATEX_HEADING = re.compile(
    r"^[ \t]*\\(part|chapter|section|subsection|subsubsection|paragraph)\*?[ \t]*"
    r"(?:\[[^\]\n]*\])?[ \t]*\{"
)
_LATEX_VERBATIM = re.compile(r"\\(begin|end)\{(verbatim\*?|lstlisting|minted|comment)\}")
_LATEX_TITLE = re.compile(r"^[ \t]*\\title[ \t]*(?:\[[^\]\n]*\])?[ \t]*\{", re.MULTILINE)
_LATEX_INPUT = re.compile(r"^[^%\n]*\\(?:input|include)\{", re.MULTILINE)
_LATEX_COMMAND = re.compile(r"\\[a-zA-Z]+\*?|[{}~]")
_MAX_TITLE = 400
_RST_LINE = re.compile(r"^([!-/:-@[-`{-~])\1{2,}[ \t]*$")


def load_text(file: InputFile) -> SourceText:
    """Plain text and Markdown: exact, with the headings it shows."""
    found = read_text(file)
    source = text_source(found.text, str(file.path.absolute()), file.path.name)
    return replace(source, warnings=(*found.warnings, *source.warnings))


def load_code(file: InputFile) -> SourceText:
    """Exact, without headings: pages are named by their lines, the title is the path."""
    found = read_markup(file.read(), file.path)
    title = _shown_path(file.path)
    return exact_source(file.path, found.text, title=title, warnings=found.warnings)


def load_latex(file: InputFile) -> SourceText:
    """Exact source; sectioning commands are headings, included files are not followed."""
    found = read_text(file)
    text = found.text
    title = _LATEX_TITLE.search(text)
    named = _plain_latex(_braced(text, title.end())) if title else ""
    warnings = list(found.warnings)
    inputs = len(_LATEX_INPUT.findall(text))
    if inputs:
        warnings.append(f"{inputs} \\input or \\include not followed: index those files too.")
    return exact_source(file.path, text, list(_latex_headings(text)), named, warnings)


def load_rst(file: InputFile) -> SourceText:
    """Exact source; underlined lines are headings, levels in the order of their appearance."""
    found = read_text(file)
    marks = list(_rst_headings(found.text))
    return exact_source(file.path, found.text, marks, warnings=found.warnings)


def _shown_path(path: Path) -> str:
    here = Path.cwd()
    full = path.absolute()
    return (full.relative_to(here) if full.is_relative_to(here) else path).as_posix()


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Start and text of each line."""
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, line.rstrip("\r\n")
        start += len(line)


def _latex_headings(text: str) -> Iterator[tuple[int, int, str]]:
    verbatim = False
    for start, line in _lines(text):
        for state in _LATEX_VERBATIM.finditer(line):
            verbatim = state.group(1) == "begin"
        found = None if verbatim else _LATEX_HEADING.match(line)
        if found:
            name = _plain_latex(_braced(text, start + found.end()))
            if name:
                yield start, _LATEX_LEVELS[found.group(1)], name


def _braced(text: str, start: int) -> str:
    """What stands in braces that were opened just before `start`."""
    depth = 1
    for place in range(start, min(start + _MAX_TITLE, len(text))):
        depth += {"{": 1, "}": -1}.get(text[place], 0) if text[place - 1] != "\\" else 0
        if not depth:
            return text[start:place]
    return text[start : start + _MAX_TITLE].partition("\n")[0]


def _plain_latex(title: str) -> str:
    return " ".join(_LATEX_COMMAND.sub(" ", title).split())


def _rst_headings(text: str) -> Iterator[tuple[int, int, str]]:
    lines = list(_lines(text))
    levels: dict[tuple[str, bool], int] = {}
    for place in range(len(lines) - 1):
        start, title = lines[place]
        under = _RST_LINE.match(lines[place + 1][1])
        if not under or not title.strip() or _RST_LINE.match(title):
            continue
        above = lines[place - 1][1] if place else ""
        over = above.rstrip() == lines[place + 1][1].rstrip()
        if (title[0].isspace() and not over) or len(lines[place + 1][1]) < len(title.rstrip()):
            continue
        if not over and above.strip():
            continue  # a line of a paragraph or of a table, not a title
        key = (under.group(1), over)
        level = levels.setdefault(key, len(levels) + 1)
        yield (lines[place - 1][0] if over else start), level, title.strip()
