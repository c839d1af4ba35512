"""Bytes of chat exports: decoding, folders and zip files."""

from __future__ import annotations

import codecs
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from hmars.errors import InputError
from hmars.indexing.turns.drafts import Notes

_UNPACKED_LIMIT = 4 * 1024**3
"""Bytes; a zip that claims more is refused rather than unpacked into memory."""


def decode(data: bytes, notes: Notes) -> str:
    """UTF-8 or UTF-16 with or without a byte order mark; anything else is noted."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        notes.note(f"not valid UTF-8 (byte {error.start}), read as Windows-1252")
        return data.decode("cp1252", "replace")


def read_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None


def folder_files(path: Path) -> dict[str, bytes]:
    """JSON files of an unpacked export by path relative to the folder."""
    found = sorted(item for item in path.rglob("*.json") if item.is_file())
    return {item.relative_to(path).as_posix(): read_bytes(item) for item in found}


def zip_files(data: bytes, name: str) -> Mapping[str, bytes]:
    """Text files (.json, .txt) of a zipped export.

    Raises:
        InputError: damaged, encrypted or unreasonably large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [
                member
                for member in archive.infolist()
                if not member.is_dir()
                and member.filename.lower().endswith((".json", ".txt"))
                and not member.filename.startswith("__MACOSX")
            ]
            if sum(member.file_size for member in members) > _UNPACKED_LIMIT:
                raise InputError(f"{name} unpacks to more than 4 GB: unpack it and give the files.")
            return {member.filename: archive.read(member) for member in members}
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
        raise InputError(f"{name} cannot be unpacked: {error}.") from None
