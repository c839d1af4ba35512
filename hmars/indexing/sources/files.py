"""Files as loaders see them, and the search for files in folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from hmars.errors import EmptyInputError, InputError
from hmars.indexing.sources.limits import MAX_PLAIN_BYTES, MIB

SKIPPED_FOLDERS = frozenset({"CVS", "__pycache__", "node_modules"})
"""Besides all hidden ones (`.git`, `.hg`, `.svn`, `.venv`)."""
HEAD_BYTES = 4096
_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that exists and is not empty, with its first bytes."""

    path: Path
    size: int
    head: bytes
    password: str | None = field(default=None, repr=False)

    def read(self) -> bytes:
        """All bytes of a file of a format that is read whole."""
        if self.size > MAX_PLAIN_BYTES:
            raise InputError(
                f"{self.path} has {self.size // MIB} MiB, more than "
                f"{MAX_PLAIN_BYTES // MIB} MiB: split it."
            )
        return self.path.read_bytes()


def open_file(path: Path, password: str | None) -> InputFile:
    """Look at a file.

    Raises:
        InputError: it does not exist, is not a file or may not be read.
        EmptyInputError: it has no bytes.
    """
    try:
        if not path.is_file():
            reason = "is not a file" if path.exists() else "does not exist"
            raise InputError(f"{path} {reason}: give the path of a document or a folder.")
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not head:
        raise EmptyInputError(f"{path} is empty (0 bytes).")
    return InputFile(path, size, head, password)


def find_files(paths: Iterable[Path], glob: str | None = None) -> list[Path]:
    """Files that the paths mean: a file itself, a folder all its files, a pattern its matches.

    Hidden files and folders and those of version control inside a folder are left out, links to
    folders are followed once. `glob` filters what is found in folders, by name or by the path
    inside the folder (`*.py`, `src/**/*.md`). Each folder in the order of its names.

    Raises:
        InputError: a path does not exist, or nothing is found at all.
    """
    found: dict[Path, None] = {}
    asked = list(paths)
    for path in asked:
        if path.is_dir():
            found.update(dict.fromkeys(_walk(path, glob)))
        elif path.exists():
            found[path] = None
        elif _WILD & set(str(path)):
            found.update(dict.fromkeys(_expand(path)))
        else:
            raise InputError(f"{path} does not exist: give the path of a document or a folder.")
    if not found:
        places = ", ".join(map(str, asked)) or "the given paths"
        matching = f" that match '{glob}'" if glob else ""
        raise InputError(f"There are no files{matching} in {places}: check the path and --glob.")
    return list(found)


def _expand(pattern: Path) -> Iterator[Path]:
    root = Path(pattern.anchor) if pattern.anchor else Path()
    relative = pattern.relative_to(root) if pattern.anchor else pattern
    return iter(sorted(item for item in root.glob(str(relative)) if item.is_file()))


def _walk(root: Path, glob: str | None) -> Iterator[Path]:
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(root, followlinks=True):
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS
        )
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and path.is_file() and _matches(path, root, glob):
                yield path


def _matches(path: Path, root: Path, glob: str | None) -> bool:
    if glob is None:
        return True
    inside = path.relative_to(root).as_posix()
    # `**/` also means "in no folder", which fnmatch does not know.
    return any(
        fnmatch(name, pattern)
        for pattern in {glob, glob.replace("**/", "")}
        for name in {path.name, inside}
    )
