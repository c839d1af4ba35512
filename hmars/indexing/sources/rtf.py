"""RTF through striprtf; embedded objects and pictures are skipped by it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from importlib import import_module
from typing import Any

from hmars.errors import InputError, MissingExtraError
from hmars.indexing.sources.files import InputFile
from hmars.indexing.text_source import text_source
from hmars.model import SourceText

MAX_DEPTH = 500
MAX_FONT_TABLE = 1 << 17
"""Characters."""
_BRACE = re.compile(r"\\.|([{}])", re.DOTALL)
_LOST = re.compile(r"\\(footnote|shptxt|deleted)\b")
_NAMES = {"footnote": "footnote", "shptxt": "text box", "deleted": "deleted passage, kept as text"}


def load_rtf(file: InputFile) -> SourceText:
    """The text of an RTF file; tables come as rows with `|`.

    Raises:
        InputError: the file is damaged.
        MissingExtraError: striprtf is not installed.
    """
    try:
        striprtf: Any = import_module("striprtf.striprtf")
    except ImportError:
        raise MissingExtraError(f"Reading the RTF file {file.path}", "documents") from None
    # RTF is ASCII; bytes above are code page text, which the parser decodes by the file's own page.
    raw = file.read().decode("latin-1")
    if _is_hostile(raw):
        raise InputError(
            f"{file.path} is a damaged RTF file: its groups are nested too deeply or its font "
            "table is too long; open it in its program and save it again."
        )
    try:
        text: str = striprtf.rtf_to_text(raw, errors="ignore")
    except (ValueError, LookupError, IndexError, RecursionError) as error:
        raise InputError(
            f"{file.path} is a damaged RTF file: {error}; open it in its program and save it again."
        ) from None
    found = text_source(text, source=str(file.path.absolute()), title=file.path.name)
    return replace(found, warnings=(*found.warnings, *_lost(raw)))


def _is_hostile(raw: str) -> bool:
    """What the parser needs the square of the size for: nested groups, a long font table."""
    fonts = raw.find("\\fonttbl")
    depth = 0
    inside: int | None = None
    for brace in _BRACE.finditer(raw):
        if not brace[1]:
            continue
        if inside is None and 0 <= fonts < brace.start():
            inside = depth
        depth += 1 if brace[1] == "{" else -1
        if depth > MAX_DEPTH:
            return True
        if inside is not None and depth < inside:
            if brace.start() - fonts > MAX_FONT_TABLE:
                return True
            inside = -len(raw)  # the table is over
    return False


def _lost(raw: str) -> list[str]:
    """What striprtf does not tell apart, so that it is at least known."""
    counts = Counter(match[1] for match in _LOST.finditer(raw))
    return [
        f"RTF: {count} x {_NAMES[word]}" + ("." if word == "deleted" else ", left out.")
        for word, count in sorted(counts.items())
    ]
