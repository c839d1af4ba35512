"""From exact text to pages, regions and groups (S-HMARS 3.2 and App. B)."""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hmars.indexing.edges import (
    Edge,
    EdgeClass,
    ItemGround,
    TextGround,
    choose,
    cut_items,
    least,
)
from hmars.indexing.graphemes import breaks_grapheme
from hmars.indexing.labels import PageNamer
from hmars.model import Group, Mark, Page, Region, SourceText
from hmars.settings import PartitionSettings
from hmars.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class Partition:
    """The hierarchy over one text. All pages of all regions, joined, are the text."""

    regions: tuple[Region, ...]
    groups: tuple[Group, ...]
    tokens: int
    """Sum of what the pages count."""
    warnings: tuple[str, ...] = ()


def partition(
    source: SourceText, tokenizer: Tokenizer, settings: PartitionSettings, document: str
) -> Partition:
    """Cut a text into pages of at most `page_tokens`, regions of pages, and groups of regions.

    Every page counts at most `page_tokens` tokens by itself, also with a tokenizer whose counts do
    not add up. Edges are chosen by content (`edges`), so that an edit moves only those near it;
    `snap = "none"` cuts at the limit. Visible characters and turns stay whole unless one alone is
    larger than a page.
    """
    pages, classes, warnings = _Pager(source, tokenizer, settings).run()
    snap = settings.snap == "structure"
    hashes = [zlib.crc32(page.text.encode("utf-8", "surrogatepass")) for page in pages]
    page_ground = ItemGround(classes, hashes) if snap else None
    sizes = [page.tokens for page in pages]
    runs = cut_items(sizes, page_ground, settings.region_tokens, settings.tolerance)
    regions = tuple(
        Region(document, index, tuple(pages[start:end]))
        for index, (start, end) in enumerate(runs, start=1)
    )
    region_ground = (
        ItemGround([classes[start] for start, _ in runs], [hashes[end - 1] for _, end in runs])
        if snap
        else None
    )
    unions = cut_items([1] * len(runs), region_ground, settings.group_regions, settings.tolerance)
    groups = tuple(
        Group(index, tuple(range(start + 1, end + 1)))
        for index, (start, end) in enumerate(unions, start=1)
    )
    return Partition(regions, groups, sum(sizes), tuple(warnings))


class _Pager:
    """One forward pass over a text."""

    def __init__(
        self, source: SourceText, tokenizer: Tokenizer, settings: PartitionSettings
    ) -> None:
        self._text = source.text
        self._tokenizer = tokenizer
        self._settings = settings
        self._namer = PageNamer(source)
        self._starts = tokenizer.starts(source.text)
        self._content_end = len(source.text.rstrip())
        marks = _mark_classes(source.marks)
        self._ground = TextGround(
            source.text, self._starts, tokenizer.exact_slices, marks, list(marks)
        )
        whole = any(mark.kind == "turn" for mark in source.marks)
        self._whole_marks = list(marks) if whole else []
        self._split_turns = 0
        self._over_limit = 0

    def run(self) -> tuple[list[Page], list[int], list[str]]:
        """Pages, the class of the edge before each, and warnings."""
        pages: list[Page] = []
        classes: list[int] = []
        start, edge_class = 0, 0
        while start < len(self._text):
            edge, tokens = self._next(start)
            name = self._namer.name(start, edge.place)
            text = self._text[start : edge.place]
            index = len(pages) + 1
            page = Page(index, start, edge.place, tokens, name.label, name.context, text)
            pages.append(page)
            classes.append(edge_class)
            start, edge_class = edge.place, edge.edge_class
        return pages, classes, self._warnings()

    def _warnings(self) -> list[str]:
        limit = self._settings.page_tokens
        warnings: list[str] = []
        if self._split_turns:
            warnings.append(
                f"{self._split_turns} page edges fall inside a turn, because the turn is larger "
                f"than a page of {limit} tokens."
            )
        if self._over_limit:
            warnings.append(
                f"{self._over_limit} single characters count more than {limit} tokens; each is a "
                "page of its own."
            )
        return warnings

    def _next(self, start: int) -> tuple[Edge, int]:
        """The end of the page that begins at `start`, and what the page counts."""
        limit = budget = self._settings.page_tokens
        while True:
            edge = self._edge(start, budget)
            tokens = self._count(start, edge.place)
            if tokens <= limit or edge.place == start + 1:
                break
            if budget == 1:
                # The tokenizer's offsets are of no use here: cut by code points.
                edge, tokens = self._halve(start, edge.place)
                break
            budget = max(1, budget - (tokens - limit))
        if tokens > limit:
            self._over_limit += 1
        if self._is_inside_turn(edge.place):
            self._split_turns += 1
        return edge, tokens

    def _halve(self, start: int, end: int) -> tuple[Edge, int]:
        while True:
            end = start + max(1, (end - start) // 2)
            tokens = self._count(start, end)
            if tokens <= self._settings.page_tokens or end == start + 1:
                return Edge(end, EdgeClass.CHARACTER), tokens

    def _edge(self, start: int, budget: int) -> Edge:
        """The best end for a page of `budget` tokens, by the token starts of the whole text."""
        first = int(np.searchsorted(self._starts, np.uint32(start)))
        if first + budget >= len(self._starts):
            return Edge(len(self._text), EdgeClass.CHARACTER)
        high = max(start + 1, int(self._starts[first + budget]))
        turn = self._last_whole_mark(start, high)
        if self._settings.snap == "none":
            return Edge(turn, EdgeClass.TURN) if turn else self._fixed(start, high)
        low = int(self._starts[first + least(budget, self._settings.tolerance)])
        low = min(max(low, start + 1), high)
        if turn:
            low = min(low, turn)
        else:
            low, high = self._before_blank_tail(start, low, high)
        ground = replace(self._ground, since=start, marks_only=turn is not None)
        return choose(ground, low, high) or self._fixed(start, high)

    def _fixed(self, start: int, high: int) -> Edge:
        """The last place up to `high` that does not part a visible character."""
        for place in range(high, start, -1):
            if not breaks_grapheme(self._text, place, start):
                return Edge(place, EdgeClass.CHARACTER)
        return Edge(high, EdgeClass.CHARACTER)

    def _before_blank_tail(self, start: int, low: int, high: int) -> tuple[int, int]:
        """Keep the white space at the end of the text on a page with something before it."""
        limit = self._settings.page_tokens
        if not start < self._content_end <= high:
            return low, high
        last_page = int(self._starts[max(0, len(self._starts) - limit)])
        last = self._content_end - 1
        earliest = max(start + 1, last_page)
        if earliest > last:
            return low, high
        return (max(low, earliest) if low <= last else earliest), last

    def _last_whole_mark(self, start: int, high: int) -> int | None:
        index = bisect_right(self._whole_marks, high)
        place = self._whole_marks[index - 1] if index else 0
        return place if place > start else None

    def _is_inside_turn(self, place: int) -> bool:
        if not self._whole_marks or not self._whole_marks[0] < place < len(self._text):
            return False
        index = bisect_left(self._whole_marks, place)
        return index == len(self._whole_marks) or self._whole_marks[index] != place

    def _count(self, start: int, end: int) -> int:
        if self._tokenizer.exact_slices:
            first, last = np.searchsorted(self._starts, np.array([start, end], dtype=np.uint32))
            if self._is_start(int(first), start) and self._is_start(int(last), end):
                return int(last - first)
        return self._tokenizer.count(self._text[start:end])

    def _is_start(self, index: int, place: int) -> bool:
        if index == len(self._starts):
            return place == len(self._text)
        return int(self._starts[index]) == place


def _mark_classes(marks: Sequence[Mark]) -> dict[int, int]:
    """Class of each named place, in ascending order; the best where several meet."""
    classes: dict[int, int] = {}
    for mark in sorted(marks, key=lambda mark: mark.start):
        kinds = {"heading": min(mark.level, 9), "place": EdgeClass.PLACE, "turn": EdgeClass.TURN}
        classes[mark.start] = min(kinds[mark.kind], classes.get(mark.start, EdgeClass.CHARACTER))
    return classes
