"""What a suite is made of: documents with questions, gold evidence and gold answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, TypeVar

from hmars.coverage import GoldUnit, Span
from hmars.errors import ConfigError, InputError
from hmars.model import DocumentKind, Mark, SourceText

Scoring = Literal["short", "all", "letter", "judge", "abstain", "none"]
"""How an answer is scored: EM, F1 and Sub_EM against alternatives; the share of the answers that it
names; the option's letter; a judge; whether the system abstains; or not at all (evidence only)."""

Item = TypeVar("Item")
Json = Any
"""A part of a data file: whatever JSON holds."""


@dataclass(frozen=True)
class BenchDocument:
    """One text that systems build on. Spans of gold units refer to `text`."""

    id: str
    title: str
    text: str
    kind: DocumentKind = "text"
    marks: tuple[Mark, ...] = ()

    def source(self) -> SourceText:
        return SourceText(
            text=self.text, source=self.id, title=self.title, kind=self.kind, marks=self.marks
        )


@dataclass(frozen=True)
class Case:
    """One question with what is known to be right."""

    id: str
    set: str
    question: str
    answers: tuple[str, ...] = ()
    gold: tuple[GoldUnit, ...] = ()
    scoring: Scoring = "short"
    kind: str = ""
    """Question type inside its set."""
    choices: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    """What was varied: length, position, order, distance."""
    units: frozenset[int] = frozenset()
    """Gold among the `units` of its bundle, for filters by BM25 recall at K = gold."""


@dataclass(frozen=True)
class Bundle:
    """A document with the questions asked of it."""

    document: BenchDocument
    cases: tuple[Case, ...]
    units: tuple[Span, ...] = ()
    """The retrieval units in which the set counts its evidence."""


@dataclass(frozen=True)
class Options:
    """What a loader is told. `limit` is the number of questions, spread over sets and kinds."""

    data: Path | None = None
    limit: int | None = None
    seed: int = 0
    lengths: tuple[int, ...] = ()
    """Paragraphs a document (multihop), or thousands of words (ruler); empty takes the default."""
    sets: tuple[str, ...] = ()
    """Only these data sets; empty takes all of the suite."""
    together: int = 1
    """Questions whose paragraphs are packed into one document (multihop)."""
    whole: bool = False
    """The limit takes all questions of a document before the next: fewer documents to build on."""
    extra: dict[str, str] = field(default_factory=dict[str, str])

    def folder(self, name: str) -> Path:
        """The folder of a data set.

        Raises:
            ConfigError: no data folder was given, or it has no such set.
        """
        if self.data is None:
            raise ConfigError("This suite reads real data: say where it is with --data DIR.")
        folder = self.data / name
        if not folder.is_dir():
            raise ConfigError(f"{self.data} has no folder {name}; see docs/benchmarks.md.")
        return folder


Loader = Callable[[Options], Iterator[Bundle]]


class TextBuilder:
    """Joins pieces into a text and remembers where each piece is."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._marks: list[Mark] = []
        self.length = 0

    def add(self, text: str) -> Span:
        start = self.length
        self._parts.append(text)
        self.length += len(text)
        return (start, self.length)

    def heading(self, title: str, *, level: int = 1) -> None:
        """A titled part begins here; the title stands in the text on a line of its own."""
        self._marks.append(Mark(self.length, title, title, kind="heading", level=level))
        self.add(f"{title}\n\n")

    def place(self, label: str) -> None:
        self._marks.append(Mark(self.length, label, kind="place"))

    def turn(self, speaker: str, text: str, *, when: str = "", label: str = "") -> Span:
        """A turn under a header line as hmars lays dialogues out; the span is what was said."""
        header = f"{speaker} | {when}" if when else speaker
        self._marks.append(Mark(self.length, label or header, header, kind="turn"))
        self.add(f"[{header}]\n")
        span = self.add(text)
        self.add("\n\n")
        return span

    def document(self, id_: str, title: str, kind: DocumentKind = "text") -> BenchDocument:
        return BenchDocument(id_, title, "".join(self._parts), kind, tuple(self._marks))


def read_json(path: Path) -> Json:
    """The content of a JSON file.

    Raises:
        InputError: it cannot be read or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}.") from None


def read_lines(path: Path) -> list[Json]:
    """The lines of a JSONL file.

    Raises:
        InputError: it cannot be read, or a line is not JSON.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON lines: {error}.") from None


def read_text(path: Path) -> str:
    """A file's text with its line ends as they are: offsets of gold spans depend on it."""
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def rank_of(seed: int, *names: object) -> int:
    """A number that orders things at random, equal on every machine for equal seeds."""
    text = "\x1f".join(str(name) for name in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def spread(
    items: Iterable[Item],
    limit: int | None,
    *,
    stratum: Callable[[Item], str],
    name: Callable[[Item], str],
    seed: int,
) -> list[Item]:
    """At most `limit` items, taken in turn from every stratum, at random inside it.

    The order of the items stays. A larger limit keeps what a smaller one took.
    """
    listed = list(items)
    if limit is None or limit >= len(listed):
        return listed
    strata: dict[str, list[int]] = {}
    for number, item in enumerate(listed):
        strata.setdefault(stratum(item), []).append(number)
    for numbers in strata.values():
        numbers.sort(key=lambda number: rank_of(seed, name(listed[number])))
    turns = sorted(
        (turn, key, number)
        for key, numbers in strata.items()
        for turn, number in enumerate(numbers)
    )
    chosen = {number for _, _, number in turns[:limit]}
    return [item for number, item in enumerate(listed) if number in chosen]


def spread_cases(bundles: Sequence[Bundle], options: Options) -> list[Bundle]:
    """Bundles with at most `options.limit` questions altogether, spread over sets."""
    if options.whole and options.limit is not None:
        return _whole(bundles, options.limit, options.seed)
    pairs = [(bundle, case) for bundle in bundles for case in bundle.cases]
    kept = {
        case.id
        for _, case in spread(
            pairs,
            options.limit,
            stratum=lambda pair: pair[1].set,
            name=lambda pair: pair[1].id,
            seed=options.seed,
        )
    }
    chosen = [
        replace(bundle, cases=tuple(case for case in bundle.cases if case.id in kept))
        for bundle in bundles
    ]
    return [bundle for bundle in chosen if bundle.cases]


def _whole(bundles: Sequence[Bundle], limit: int, seed: int) -> list[Bundle]:
    """Documents in turn from every set, at random inside it, each with all its questions."""
    strata: dict[str, list[Bundle]] = {}
    for bundle in bundles:
        if bundle.cases:
            strata.setdefault(bundle.cases[0].set, []).append(bundle)
    for listed in strata.values():
        listed.sort(key=lambda bundle: rank_of(seed, bundle.document.id))
    chosen: list[Bundle] = []
    room = limit
    for bundle in (item for turn in zip_longest(*strata.values()) for item in turn if item):
        if room <= 0:
            break
        chosen.append(replace(bundle, cases=bundle.cases[:room]))
        room -= len(chosen[-1].cases)
    return chosen


def gold_of(spans: Iterable[Span], labels: Iterable[str] = ()) -> tuple[GoldUnit, ...]:
    """One gold unit for each span."""
    named = list(labels)
    return tuple(
        GoldUnit((span,), named[number] if number < len(named) else "")
        for number, span in enumerate(spans)
    )


def occurrences(text: str, quote: str) -> tuple[Span, ...]:
    """Every place of a quote, without overlaps."""
    places: list[Span] = []
    at = text.find(quote)
    while quote and at >= 0:
        places.append((at, at + len(quote)))
        at = text.find(quote, at + len(quote))
    return tuple(places)
