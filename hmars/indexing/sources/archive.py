"""Zip containers (Office, EPUB, ODF) read within limits, and their XML without surprises."""

from __future__ import annotations

import posixpath
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from hmars.errors import InputError
from hmars.indexing.sources.limits import (
    MAX_ARCHIVE_BYTES,
    MAX_MEMBER_BYTES,
    MAX_MEMBERS,
    MAX_RATIO,
    MAX_XML_DEPTH,
    MAX_XML_ELEMENTS,
    MIB,
    RATIO_FREE_BYTES,
)

_CHUNK = 1 << 16
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
    struct.error,
)
"""What `zipfile` raises for damaged, odd or encrypted entries."""


class DamagedPartError(Exception):
    """One part of a container cannot be read; the loader decides whether the rest can be."""


class Archive:
    """A zip file whose entries are unpacked as a stream, with every byte counted."""

    def __init__(self, path: Path, zipped: zipfile.ZipFile) -> None:
        self.path = path
        self._zip = zipped
        self._unpacked = 0
        entries = zipped.infolist()
        if len(entries) > MAX_MEMBERS:
            raise _bomb(path, f"it has {len(entries):,} entries, more than {MAX_MEMBERS:,}")
        self._entries = {entry.filename: entry for entry in entries}

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    @property
    def names(self) -> list[str]:
        return list(self._entries)

    def chunks(self, name: str) -> Iterator[bytes]:
        """Unpack one entry piece by piece.

        Raises:
            DamagedPartError: it is absent, encrypted or cannot be unpacked.
            InputError: it unpacks to more than the limits allow.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise DamagedPartError(f"'{name}' is missing")
        if entry.flag_bits & 0x1:
            raise DamagedPartError(f"'{name}' is encrypted")
        # What the header states is checked first, since it may be true; then what really comes.
        self._check(name, entry.file_size, entry.compress_size)
        size = 0
        try:
            with self._zip.open(entry) as stream:
                while chunk := stream.read(_CHUNK):
                    size += len(chunk)
                    self._unpacked += len(chunk)
                    self._check(name, size, entry.compress_size)
                    yield chunk
        except _BROKEN as error:
            raise DamagedPartError(f"'{name}' cannot be unpacked ({error})") from None

    def read(self, name: str) -> bytes:
        return b"".join(self.chunks(name))

    def tree(self, name: str) -> Element:
        """The whole XML of a small entry."""
        root: Element | None = None
        for kind, element, depth in self.events(name):
            if kind == "start" and depth == 1:
                root = element
        if root is None:
            raise DamagedPartError(f"'{name}' is empty")
        return root

    def children(self, name: str, parents: frozenset[str]) -> Iterator[Element]:
        """Children of elements with one of these local names, each dropped after its turn.

        So that a document of any length needs the memory of one paragraph or table.
        """
        stack: list[Element] = []
        inside = 0
        for kind, element, _ in self.events(name):
            if kind == "start":
                if not inside and stack and local(stack[-1]) in parents:
                    inside = len(stack) + 1
                stack.append(element)
                continue
            stack.pop()
            if inside and len(stack) < inside:
                inside = 0
                yield element
                stack[-1].clear()

    def events(self, name: str) -> Iterator[tuple[str, Element, int]]:
        """Starts and ends of elements with their depth, within the limits."""
        parser: XMLPullParser[Element] = XMLPullParser(("start", "end"))
        depth = elements = 0
        tail = b""
        try:
            for chunk in self.chunks(name):
                if b"<!ENTITY" in (tail + chunk).replace(b"\0", b""):
                    raise DamagedPartError(f"'{name}' declares entities, which are not resolved")
                tail = chunk[-20:]
                parser.feed(chunk)
                for kind, element in _pairs(parser):
                    depth += 1 if kind == "start" else 0
                    elements += 1 if kind == "start" else 0
                    if depth > MAX_XML_DEPTH or elements > MAX_XML_ELEMENTS:
                        raise _bomb(self.path, f"the XML of '{name}' is nested or filled too much")
                    yield kind, element, depth
                    depth -= 1 if kind == "end" else 0
            parser.close()
            yield from ((kind, element, depth) for kind, element in _pairs(parser))
        except ParseError as error:
            raise DamagedPartError(f"'{name}' is not well-formed XML ({error})") from None

    def _check(self, name: str, size: int, packed: int) -> None:
        if size > MAX_MEMBER_BYTES or self._unpacked > MAX_ARCHIVE_BYTES:
            limit = MAX_MEMBER_BYTES if size > MAX_MEMBER_BYTES else MAX_ARCHIVE_BYTES
            raise _bomb(self.path, f"'{name}' unpacks beyond {limit // MIB} MiB")
        if size > RATIO_FREE_BYTES and size > MAX_RATIO * max(packed, 1):
            raise _bomb(self.path, f"'{name}' unpacks to over {MAX_RATIO} times its size")


@contextmanager
def open_archive(path: Path, what: str) -> Generator[Archive]:
    """Open a container; a part that is needed and broken ends as 'damaged'.

    Raises:
        InputError: not a readable zip, over the limits, or a part that is needed is broken.
    """
    try:
        with zipfile.ZipFile(path) as zipped:
            yield Archive(path, zipped)
    except (zipfile.BadZipFile, DamagedPartError, struct.error, EOFError) as error:
        raise InputError(
            f"{path} is a damaged {what}: {error}; open it in its program and save it again."
        ) from None


def relations(archive: Archive, part: str) -> dict[str, tuple[str, str]]:
    """Relations of an Office part: id to (kind, target). External targets are left out."""
    folder, name = posixpath.split(part)
    rels = posixpath.join(folder, "_rels", f"{name}.rels")
    if rels not in archive:
        return {}
    found: dict[str, tuple[str, str]] = {}
    for entry in archive.tree(rels):
        if entry.get("TargetMode") == "External":
            continue
        kind = entry.get("Type", "").rpartition("/")[2]
        found[entry.get("Id", "")] = (kind, resolve(folder, entry.get("Target", "")))
    return found


def resolve(folder: str, target: str) -> str:
    """The name of the entry a relative reference means; never outside the container."""
    target = unquote(target.partition("#")[0])
    if target.startswith("/"):
        return posixpath.normpath(target).lstrip("/")
    return posixpath.normpath(posixpath.join(folder, target)).lstrip("./")


def local(element: Element) -> str:
    """The name without its namespace: the strict and the usual dialect differ only there."""
    return element.tag.rpartition("}")[2]


def attribute(element: Element, name: str) -> str | None:
    """An attribute by its local name."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return value
    return None


def child(element: Element, name: str) -> Element | None:
    return next((item for item in element if local(item) == name), None)


def descendants(element: Element, wanted: Callable[[str], bool]) -> Iterator[Element]:
    return (item for item in element.iter() if wanted(local(item)))


def _pairs(parser: XMLPullParser[Element]) -> Iterator[tuple[str, Element]]:
    return cast("Iterator[tuple[str, Element]]", parser.read_events())


def _bomb(path: Path, reason: str) -> InputError:
    return InputError(f"{path} was refused: {reason} (a zip bomb, or split it into parts).")
