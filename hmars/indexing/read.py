"""Whatever a caller hands over, a path or a text, as `SourceText`."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

from hmars.errors import InputError
from hmars.indexing.sources import load
from hmars.indexing.text_source import text_source
from hmars.model import SourceText

LONGEST_PATH = 4096

_LOOKS_LIKE_A_FILE = re.compile(r"(?:\S*[/\\])?[^\s/\\]+\.[A-Za-z0-9]{1,5}")


def read_source(
    source: str | Path | SourceText, *, title: str | None = None, password: str | None = None
) -> SourceText:
    """Read a file, or take a text as it is.

    A string is a path where such a file exists; one that looks like a file name and does not
    exist is an error rather than a document of one word; anything else is text.

    Raises:
        InputError, EmptyInputError: it cannot be read, or holds nothing.
    """
    if isinstance(source, SourceText):
        return source
    path = source if isinstance(source, Path) else _as_path(source)
    if path is not None:
        if not path.is_file():
            raise InputError(f"{path} is not a file: give the path of one file, or a text.")
        found = load(path, password=password)
        return found if title is None else replace(found, title=title)
    text = str(source)
    # A title names the document, so that a later text under it replaces this one. Without a title,
    # only the same text is the same document.
    name = title or hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return text_source(text, source=f"text:{name}", title=title or _first_words(text))


def _as_path(text: str) -> Path | None:
    if not text or len(text) > LONGEST_PATH or "\n" in text or "\x00" in text:
        return None
    try:
        exists = Path(text).exists()
    except (OSError, ValueError):
        return None
    if exists or _LOOKS_LIKE_A_FILE.fullmatch(text):
        return Path(text)
    return None


def _first_words(text: str, limit: int = 40) -> str:
    words = " ".join(text[:400].split())
    return words if len(words) <= limit else words[: limit - 1].rsplit(" ", 1)[0] + "…"
