"""Ranking chunks by the cosine similarity of embeddings; a chunk counts by its best window."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks.bench import Bench
from benchmarks.chunks import Chunk
from benchmarks.embeddings import Vectors

AT_ONCE = 256
"""Chunks embedded before they are put on disk: a kill loses no more."""


class DenseRanker:
    """Vectors of chunks, kept on disk by their text: documents that begin alike share them."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._embedder = bench.needs_embedder()
        name = hashlib.sha256(self._embedder.name.encode()).hexdigest()[:16]
        self._path = bench.folder / "vectors" / f"{name}.sqlite"

    async def index(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        keys = [hashlib.sha256(chunk.text.encode()).hexdigest() for chunk in chunks]
        text_of = dict(zip(keys, (chunk.text for chunk in chunks), strict=True))
        async with self._bench.alone(self._path):
            with closing(_opened(self._path)) as database:
                missing = [key for key in text_of if _kept(database, key) is None]
                for first in range(0, len(missing), AT_ONCE):
                    some = missing[first : first + AT_ONCE]
                    found, owners = await self._embedder.embed([text_of[key] for key in some])
                    _keep(database, some, found, owners)
                parts = [part for key in keys if (part := _kept(database, key)) is not None]
        self._vectors: Vectors = np.concatenate(parts)
        self._owners = np.repeat(np.arange(len(parts)), [len(part) for part in parts])

    async def rank(self, question: str) -> list[Chunk]:
        """All chunks, best first."""
        asked, _ = await self._embedder.embed([question])
        similar = (self._vectors @ asked.T).max(axis=1)
        best = np.full(len(self._chunks), -np.inf)
        np.maximum.at(best, self._owners, similar)
        return [self._chunks[int(at)] for at in np.argsort(-best, kind="stable")]


def _opened(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE IF NOT EXISTS chunks (key TEXT PRIMARY KEY, windows, vectors)")
    return database


def _kept(database: sqlite3.Connection, key: str) -> Vectors | None:
    """One row a window of the text."""
    row = database.execute("SELECT windows, vectors FROM chunks WHERE key = ?", (key,)).fetchone()
    return np.frombuffer(row[1], dtype=np.float32).reshape(row[0], -1) if row else None


def _keep(
    database: sqlite3.Connection, keys: Sequence[str], vectors: Vectors, owners: Sequence[int]
) -> None:
    with database:
        for number, key in enumerate(keys):
            mine = np.asarray(vectors[np.asarray(owners) == number], dtype=np.float32)
            row = (key, len(mine), mine.tobytes())
            database.execute("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)", row)
