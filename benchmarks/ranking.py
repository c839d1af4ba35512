"""Ranking chunks by the cosine similarity of embeddings; a chunk counts by its best window."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.bench import Bench
from benchmarks.chunks import Chunk
from benchmarks.embeddings import Vectors


class DenseRanker:
    """Vectors of chunks, kept on disk under what they were made of."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._embedder = bench.needs_embedder()
        self._folder = bench.folder / "vectors"

    async def index(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        digest = hashlib.sha256(self._embedder.name.encode())
        for chunk in chunks:
            digest.update(chunk.text.encode())
            digest.update(b"\x00")
        path = self._folder / f"{digest.hexdigest()}.npz"
        async with self._bench.alone(path):
            if not path.is_file():
                _keep(path, *await self._embedder.embed([chunk.text for chunk in chunks]))
        kept = np.load(path)
        self._vectors: Vectors = kept["vectors"]
        self._owners: list[int] = kept["owners"].tolist()

    async def rank(self, question: str) -> list[Chunk]:
        """All chunks, best first."""
        asked, _ = await self._embedder.embed([question])
        similar = (self._vectors @ asked.T).max(axis=1)
        best = np.full(len(self._chunks), -np.inf)
        np.maximum.at(best, np.asarray(self._owners), similar)
        return [self._chunks[int(at)] for at in np.argsort(-best, kind="stable")]


def _keep(path: Path, vectors: Vectors, owners: Sequence[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part.npz")
    np.savez(unfinished, vectors=vectors, owners=np.asarray(owners))
    unfinished.replace(path)
