"""Bytes of a file as clean text, with what had to be guessed or repaired."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hmars.indexing.sources.files import InputFile
from hmars.indexing.text_source import clean, decode

_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)"""
    rb"""|<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]+)""",
    re.IGNORECASE,
)
_DECLARATION_BYTES = 4096
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_WIDER = {"iso-8859-1": "cp1252", "us-ascii": "cp1252", "gb2312": "gb18030"}
"""Browsers read these declarations as the wider tables."""


@dataclass(frozen=True, slots=True)
class Reading:
    text: str
    warnings: tuple[str, ...] = ()


def read_text(file: InputFile) -> Reading:
    """Decode by byte order mark, as UTF-8, or by the looks of the bytes."""
    return _read(file.read(), file.path)


def read_markup(data: bytes, path: Path) -> Reading:
    """Decode HTML or XML by byte order mark, then by what it declares, then by its looks."""
    found = _DECLARED.search(data[:_DECLARATION_BYTES])
    if found and not data.startswith(_BOMS):
        name = (found.group(1) or found.group(2)).decode("ascii", "replace").lower()
        try:
            text, warnings = clean(data.decode(_WIDER.get(name, name)))
        except (LookupError, UnicodeDecodeError):
            # The declaration is wrong: the bytes decide, and the reading says so.
            return _read(data, path)
        return Reading(text, warnings)
    return _read(data, path)


def _read(data: bytes, path: Path) -> Reading:
    wide = _utf32(data)
    if wide:
        text, warnings = clean(data.decode(wide))
        guess = f"{path} was read as {wide}, by its zero bytes."
        return Reading(text, (guess, *warnings))
    decoded = decode(data, str(path))
    text, warnings = clean(decoded.text)
    return Reading(text, (*decoded.warnings, *warnings))


def _utf32(data: bytes) -> str | None:
    """UTF-32 without a byte order mark: the upper two of four bytes are nearly always small."""
    if len(data) % 4 or data.startswith(_BOMS):
        return None
    head = data[:_DECLARATION_BYTES]
    for encoding, first, second in (("utf-32-le", 3, 2), ("utf-32-be", 0, 1)):
        if not any(head[first::4]) and max(head[second::4], default=0) <= 0x10:
            try:
                data.decode(encoding)
            except UnicodeDecodeError:
                return None
            return encoding
    return None
