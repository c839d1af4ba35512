"""Ask a user's own questions and measure what evidence reached the answer, and at what price."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from hmars.coverage.baselines import Bm25Baseline
from hmars.coverage.questions import Asked, Locator, by_document, read_questions
from hmars.coverage.spans import GoldUnit, Span, coverage
from hmars.errors import CallFailed, ConfigError, InputError
from hmars.indexing.read import read_source
from hmars.indexing.turns import render
from hmars.memory import Memory
from hmars.model import Answer, Frozen, Progress, Usage
from hmars.settings import Profile
from hmars.tokens import Tokenizer, load_tokenizer

Against = Literal["bm25", "full"]
AGAINST: tuple[Against, ...] = ("bm25", "full")
OnRecord = Callable[["CoverageRecord"], None]


class CoverageRecord(Frozen):
    """One question of one system. Recall and precision are None where the call failed."""

    line: int
    system: str
    document: str
    question: str
    gold: int
    recall: float | None = None
    partial: float | None = None
    precision: float | None = None
    evidence: tuple[Span, ...] = ()
    evidence_tokens: int = 0
    missed: tuple[int, ...] = ()
    """Which pieces of evidence are not wholly passed on, from 1 in the order of the line."""
    answer: str = ""
    expected: str | None = None
    abstained: bool = False
    usage: dict[str, Usage] = Field(default_factory=dict[str, Usage])
    seconds: float = 0.0
    error: str | None = None


@dataclass(frozen=True)
class _Text:
    """A document of the analysis, ready to be asked."""

    id: str
    title: str
    text: str
    tokens: int
    turns: Mapping[str, Span]
    memory: Memory


async def analyse(
    file: Path,
    stored: Memory,
    own: Memory,
    *,
    against: Sequence[Against] = ("bm25",),
    on_record: OnRecord = lambda record: None,
    on_progress: Callable[[Progress], None] = lambda step: None,
) -> list[CoverageRecord]:
    """Every question once by hmars, and by each of `against` at hmars' token budget.

    Args:
        file: the questions.
        stored: holds the documents that questions name by `document`.
        own: takes the documents that questions name by `path`.
        on_record: called with each result at once.

    Raises:
        InputError: a line, a quotation or a file is not usable; nothing was asked of that document.
        NotFoundError: no such document in `stored`.
        EndpointError: no model call can succeed.
    """
    unknown = [name for name in against if name not in AGAINST]
    if unknown:
        raise ConfigError(f"--against knows {', '.join(AGAINST)}, not '{unknown[0]}'.")
    asked = read_questions(file)
    tokenizer = load_tokenizer(stored.profile.tokenizer)
    records: list[CoverageRecord] = []

    def keep(record: CoverageRecord) -> None:
        records.append(record)
        on_record(record)

    done = 0
    for (kind, name), items in by_document(asked).items():
        if kind == "path":
            text = await _from_file(own, file.parent / name)
        else:
            text = await _from_store(stored, name)
        locator = Locator(text.text, text.title, text.turns)
        gold = [locator.gold(item) for item in items]
        run = _Run(text, stored.profile, tokenizer, tuple(against))
        for item, units in zip(items, gold, strict=True):
            for record in await run.question(item, units):
                keep(record)
            done += 1
            on_progress(Progress("questions", done, len(asked)))
    return records


async def _from_file(memory: Memory, path: Path) -> _Text:
    source = read_source(path)
    report = await memory.add(source)
    marks = [mark.start for mark in source.marks if mark.kind == "turn"]
    ends = [*marks[1:], len(source.text)] if marks else []
    turns = {f"#{number}": span for number, span in enumerate(zip(marks, ends, strict=True), 1)}
    return _Text(report.document, source.title, source.text, report.tokens, turns, memory)


async def _from_store(memory: Memory, name: str) -> _Text:
    index = await memory.hierarchy(name)
    document = index.document
    text = "".join(page.text for page in index.pages)
    turns: Mapping[str, Span] = {}
    if document.kind == "dialogue":
        conversation = await memory.find_conversation(document.id)
        rendered = render(await conversation.turns(), conversation=document.source)
        if rendered.source.text == text:
            turns = rendered.texts
    return _Text(document.id, document.title, text, document.tokens, turns, memory)


class _Run:
    """All systems on one document."""

    def __init__(
        self, text: _Text, profile: Profile, tokenizer: Tokenizer, against: tuple[Against, ...]
    ) -> None:
        self._text = text
        self._budget = profile.answer.max_prompt_tokens
        self._against = against
        self._bm25 = Bm25Baseline(text.text, tokenizer) if "bm25" in against else None

    async def question(self, item: Asked, gold: tuple[GoldUnit, ...]) -> list[CoverageRecord]:
        records = [await self._hmars(item, gold)]
        for name in self._against:
            began = time.perf_counter()
            if self._bm25 is not None and name == "bm25":
                spans, tokens = self._bm25.evidence(item.question.question, self._budget)
            else:
                spans, tokens = [(0, len(self._text.text))], self._text.tokens
            record = self._scored(item, gold, name, spans, tokens)
            seconds = time.perf_counter() - began
            records.append(record.model_copy(update={"seconds": seconds}))
        return records

    async def _hmars(self, item: Asked, gold: tuple[GoldUnit, ...]) -> CoverageRecord:
        try:
            answer: Answer = await self._text.memory.ask(
                item.question.question, document=self._text.id
            )
        except CallFailed as error:
            failed = {error.role: error.usage} if error.usage else {}
            return self._head(item, gold, "hmars").model_copy(
                update={"error": str(error), "usage": failed}
            )
        spans = [(span.start, span.end) for span in answer.evidence]
        tokens = sum(span.tokens for span in answer.evidence)
        return self._scored(item, gold, "hmars", spans, tokens).model_copy(
            update={
                "answer": answer.answer,
                "abstained": answer.abstained,
                "usage": answer.usage,
                "seconds": answer.seconds.total,
            }
        )

    def _scored(
        self,
        item: Asked,
        gold: tuple[GoldUnit, ...],
        system: str,
        spans: Sequence[Span],
        tokens: int,
    ) -> CoverageRecord:
        found = coverage(self._text.text, gold, spans)
        missed = tuple(
            number
            for number, unit in enumerate(gold, start=1)
            if coverage(self._text.text, [unit], spans).recall < 1.0
        )
        return self._head(item, gold, system).model_copy(
            update={
                "recall": found.recall,
                "partial": found.partial,
                "precision": found.precision,
                "evidence": tuple(sorted(spans)),
                "evidence_tokens": tokens,
                "missed": missed,
            }
        )

    def _head(self, item: Asked, gold: tuple[GoldUnit, ...], system: str) -> CoverageRecord:
        return CoverageRecord(
            line=item.line,
            system=system,
            document=self._text.title,
            question=item.question.question,
            gold=len(gold),
            expected=item.question.answer,
        )


def open_own(folder: Path, profile: Profile) -> Memory:
    """A store for the files of the analysis alone: the user's own stays as it is."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error}; choose another --out.") from None
    return Memory.open(folder / "coverage.sqlite", profile=profile, namespace="coverage")
