"""Choosing edges by content, so that an edit moves only the edges near it.

Pages, regions and groups are cut by one rule: after the last edge, look at the places between
`(1 - tolerance) * limit` and `limit`; take the best structural class that occurs there (heading,
paragraph, line, ...), and of equals the one whose surroundings hash highest. The hash depends on
nothing but the text before the edge: after an insertion the same places win again, and appending
leaves earlier edges alone.
"""

from __future__ import annotations

import math
import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate, groupby
from typing import Protocol

import numpy as np

from hmars.indexing.graphemes import breaks_grapheme
from hmars.tokens import Starts

HASHED = 64
"""Code points before an edge that decide between edges of the same class."""


class EdgeClass(IntEnum):
    """How good a place is to cut at; smaller is better. A heading's class is its level, 1 to 9."""

    PLACE = 10
    TURN = 11
    PARAGRAPH = 20
    LINE = 21
    SENTENCE = 22
    BLANK = 23
    CHARACTER = 24


_LINE_END = r"(?:\r\n?|[\n\u2028])"
_PATTERNS: tuple[tuple[EdgeClass, re.Pattern[str]], ...] = (
    (
        EdgeClass.PARAGRAPH,
        re.compile(rf"{_LINE_END}(?:[^\S\r\n\u2028]*{_LINE_END})+|[\f\u2029]"),
    ),
    (EdgeClass.LINE, re.compile(_LINE_END)),
    (
        EdgeClass.SENTENCE,
        re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？｡．।॥؟۔։።]+[”’」』）〉》】…]*"),
    ),
    (EdgeClass.BLANK, re.compile(r"(?<=\S)(?=\s)")),
)
"""The edge is where a match ends."""


class Ground(Protocol):
    """A sequence that can be cut."""

    def classes(self, low: int, high: int) -> Iterator[tuple[int, Sequence[int]]]:
        """Edges between `low` and `high`, both included, as (class, edges), best class first."""
        ...

    def weight(self, edge: int) -> int:
        """A hash of what stands before the edge."""
        ...

    def parts(self, edge: int) -> bool:
        """Whether this edge must not be taken after all."""
        ...


@dataclass(frozen=True, slots=True)
class Edge:
    place: int
    edge_class: int


def choose(ground: Ground, low: int, high: int) -> Edge | None:
    """The best edge between `low` and `high`, both included."""
    for edge_class, edges in ground.classes(low, high):
        weighed = [(ground.weight(edge), edge) for edge in edges]
        while weighed:
            best = max(weighed)
            if not ground.parts(best[1]):
                return Edge(best[1], edge_class)
            weighed.remove(best)
    return None


def least(limit: int, tolerance: float) -> int:
    """The size from which an edge may lie."""
    return max(1, math.ceil(limit * (1 - tolerance)))


# ---------------------------------------------------------------- in a text


@dataclass(frozen=True, slots=True)
class TextGround:
    """Edges inside a text, as offsets; with an exact tokenizer they fall on token starts."""

    text: str
    starts: Starts
    exact: bool
    marks: Mapping[int, int]
    """Class by offset, in ascending order of offset."""
    mark_starts: Sequence[int]
    since: int = 0
    """The last edge: nothing before it decides whether a visible character is parted."""
    marks_only: bool = False

    def classes(self, low: int, high: int) -> Iterator[tuple[int, Sequence[int]]]:
        yield from self._mark_classes(low, high)
        if self.marks_only:
            return
        for edge_class, pattern in _PATTERNS:
            # One character more, so that a pattern sees what follows the last place.
            found = pattern.finditer(self.text, max(0, low - HASHED), high + 1)
            yield edge_class, self._aligned([m.end() for m in found if low <= m.end() <= high])
        yield EdgeClass.CHARACTER, self._token_starts(low, high)

    def weight(self, edge: int) -> int:
        before = self.text[max(0, edge - HASHED) : edge]
        return zlib.crc32(before.encode("utf-8", "surrogatepass"))

    def parts(self, edge: int) -> bool:
        return breaks_grapheme(self.text, edge, self.since)

    def _mark_classes(self, low: int, high: int) -> Iterator[tuple[int, Sequence[int]]]:
        """Places that the source names, wherever its tokens begin."""
        first, last = bisect_left(self.mark_starts, low), bisect_right(self.mark_starts, high)
        ranked = sorted(self.mark_starts[first:last], key=self.marks.__getitem__)
        for edge_class, places in groupby(ranked, key=self.marks.__getitem__):
            yield edge_class, list(places)

    def _token_starts(self, low: int, high: int) -> list[int]:
        first, last = np.searchsorted(self.starts, np.array([low, high + 1], dtype=np.uint32))
        places: list[int] = np.unique(self.starts[first:last]).tolist()
        return places

    def _aligned(self, places: Sequence[int]) -> Sequence[int]:
        if not self.exact or not places:
            return places
        wanted = np.array(places, dtype=np.uint32)
        found = np.minimum(np.searchsorted(self.starts, wanted), len(self.starts) - 1)
        aligned: list[int] = wanted[self.starts[found] == wanted].tolist()
        return aligned


# ---------------------------------------------------------------- between items


@dataclass(frozen=True, slots=True)
class ItemGround:
    """Edges between pages or regions; edge `i` lies before item `i`."""

    edge_classes: Sequence[int]
    """Of the edge before each item."""
    hashes: Sequence[int]
    """Of each item."""

    def classes(self, low: int, high: int) -> Iterator[tuple[int, Sequence[int]]]:
        ranked = sorted(range(low, high + 1), key=self.edge_classes.__getitem__)
        for edge_class, edges in groupby(ranked, key=self.edge_classes.__getitem__):
            yield edge_class, list(edges)

    def weight(self, edge: int) -> int:
        return self.hashes[edge - 1]

    def parts(self, edge: int) -> bool:
        return False


def cut_items(
    sizes: Sequence[int], ground: Ground | None, limit: int, tolerance: float
) -> list[tuple[int, int]]:
    """Half-open runs of items with at most `limit` in sum, each at least one item.

    Without a ground every run is as long as it can be.
    """
    totals = [0, *accumulate(sizes)]
    runs: list[tuple[int, int]] = []
    start = 0
    while start < len(sizes):
        end = max(start + 1, bisect_right(totals, totals[start] + limit) - 1)
        if end < len(sizes) and ground is not None:
            low = bisect_left(totals, totals[start] + least(limit, tolerance), start + 1, end)
            edge = choose(ground, low, end)
            end = edge.place if edge else end
        runs.append((start, end))
        start = end
    return runs
