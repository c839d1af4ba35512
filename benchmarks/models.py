"""Page selection by a small real model, BM25 beside it: one command.

    python -m benchmarks.models --probe probe.json --model MODEL.gguf [--whole] [--threads 1]

The probe is a JSON file: `pages` holds a list of page texts by document, `questions` a list of
objects with `doc`, `q`, `gold` (numbers of the pages that hold the answer, from 0) and `neutral`
(pages that may be chosen as well). By default the memory is built without a model and the answer
is not written, so that the figures are those of selection; `--whole` uses the model for all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from hmars.lexical import Bm25, Terms
from hmars.llm.pool import ModelPool
from hmars.memory import Memory
from hmars.model import Answer, DocumentIndex, Group, Mark, SourceText, Usage
from hmars.prompts import PromptLibrary
from hmars.query.agents import (
    Broadcast,
    Draft,
    EvidenceBlock,
    OnText,
    QueryAgents,
    Scope,
    Selections,
)
from hmars.query.family import model_query_agents
from hmars.query.pipeline import AskSettings, ask
from hmars.settings import Profile, load_profile
from hmars.tokens import Tokenizer, load_tokenizer

PAGE_TOKENS = 1536
"""More than any page of a probe: each stays the page it is."""
REGION_PAGES = 4


@dataclass(frozen=True)
class Question:
    document: str
    text: str
    gold: tuple[int, ...]
    neutral: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """What one question came to. `rank` is of the first right page among those passed, from 1."""

    document: str
    question: str
    rank: int | None
    bm25_rank: int
    pages_passed: int
    tokens_passed: int
    seconds: float
    calls: int
    prompt_tokens: int
    cached_tokens: int
    failed: int
    best: tuple[tuple[int, float], ...]
    """The best pages with their log-odds."""


class NoBroadcast:
    """Every region gets the question itself."""

    async def broadcast(self, question: str, index: DocumentIndex, group: Group) -> Broadcast:
        del index, group
        return Broadcast(interpretation=question)


class NoAnswer:
    """Selection only."""

    async def answer(
        self, question: str, evidence: Sequence[EvidenceBlock], on_text: OnText | None = None
    ) -> Draft:
        del question, evidence, on_text
        return Draft("not asked", abstained=True)


def read_probe(path: Path) -> tuple[dict[str, list[str]], list[Question]]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    questions = [
        Question(item["doc"], item["q"], tuple(item["gold"]), tuple(item.get("neutral", ())))
        for item in cast(list[dict[str, Any]], data["questions"])
    ]
    return data["pages"], questions


def source_of(name: str, pages: Sequence[str]) -> SourceText:
    """The pages as one text whose marks keep them apart, as turns are kept."""
    marks: list[Mark] = []
    offset = 0
    for number, page in enumerate(pages):
        marks.append(Mark(offset, f"page {number}", kind="turn"))
        offset += len(page)
    return SourceText(text="".join(pages), source=name, title=name, marks=tuple(marks))


def profile_of(options: argparse.Namespace) -> Profile:
    return load_profile(
        "embedded",
        [
            f"model={options.model}",
            f"partition.page_tokens={PAGE_TOKENS}",
            f"partition.region_tokens={PAGE_TOKENS * REGION_PAGES}",
            f"answer.max_prompt_tokens={options.budget}",
            *([f"endpoints.local.threads={options.threads}"] if options.threads else []),
            *options.overrides,
        ],
    )


async def index_all(
    store: Path, profile: Profile, pages: dict[str, list[str]], *, whole: bool
) -> list[DocumentIndex]:
    """Both texts with their hierarchy, written by the model or without one."""
    writer = profile if whole else profile.model_copy(update={"agents": "extractive"})
    async with Memory.open(store, profile=writer) as memory:
        reports = [await memory.add(source_of(name, texts)) for name, texts in pages.items()]
        for report in reports:
            print(f"indexed {report.title}: {report.pages} pages, {report.seconds.total:.1f} s")
        return [await memory.hierarchy(report.document) for report in reports]


def bm25_rank(pages: Sequence[str], question: Question) -> int:
    """Where plain BM25 over the pages, with stemming, has the first right page, from 1."""
    terms = Terms()
    wanted = dict.fromkeys(terms.content(question.text), 1.0)
    scores = Bm25([terms.of(page) for page in pages]).scores(wanted)
    order = sorted(range(len(pages)), key=lambda at: -float(scores[at]))
    counted = [page for page in order if page not in question.neutral]
    return min(counted.index(page) for page in question.gold) + 1


def row_of(question: Question, pages: Sequence[str], answer: Answer, scores: Scores) -> Row:
    best: dict[int, float] = {}
    for span in answer.evidence:
        best[span.page - 1] = max(best.get(span.page - 1, 0.0), span.confidence)
    order = [
        page for page in sorted(best, key=lambda at: -best[at]) if page not in question.neutral
    ]
    ranks = [order.index(page) + 1 for page in question.gold if page in order]
    usage = answer.usage.get("select", Usage())
    return Row(
        document=question.document,
        question=question.text,
        rank=min(ranks, default=None),
        bm25_rank=bm25_rank(pages, question),
        pages_passed=len(best),
        tokens_passed=sum(span.tokens for span in answer.evidence),
        seconds=round(answer.seconds.total, 1),
        calls=usage.calls,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        failed=answer.ledger.failed + answer.ledger.truncated,
        best=tuple(scores.best()),
    )


class Scores:
    """Stands before the cut of the selections and remembers what it saw."""

    def __init__(self, agents: QueryAgents) -> None:
        self._cut = agents.cut
        self._seen: dict[int, float] = {}

    def __call__(self, selections: Selections) -> Selections:
        self._seen = {
            choice.page.index - 1: choice.confidence
            for found in selections.values()
            for choice in found.pages
        }
        return self._cut(selections) if self._cut else selections

    def best(self) -> list[tuple[int, float]]:
        ranked = sorted(self._seen.items(), key=lambda item: -item[1])
        return [(page, round(share, 6)) for page, share in ranked[:6]]


async def measure(options: argparse.Namespace) -> list[Row]:
    pages, questions = read_probe(options.probe)
    if options.document:
        pages = {name: pages[name] for name in options.document}
    questions = [question for question in questions if question.document in pages]
    profile = profile_of(options)
    tokenizer = load_tokenizer(profile.tokenizer)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "probe.sqlite"
        indexes = {
            index.document.title: index
            for index in await index_all(store, profile, pages, whole=options.whole)
        }
        pool = ModelPool(profile, cache=None, log=None, warn=print)
        try:
            for question in questions[: options.questions]:
                index = indexes[question.document]
                row = await one(question, index, pool, tokenizer, pages, options)
                rows.append(row)
                print(json.dumps(asdict(row)), flush=True)
        finally:
            await pool.close_loop()
            await asyncio.to_thread(pool.close_engines)
    return rows


async def one(
    question: Question,
    index: DocumentIndex,
    pool: ModelPool,
    tokenizer: Tokenizer,
    pages: dict[str, list[str]],
    options: argparse.Namespace,
) -> Row:
    scope = Scope((index,))
    models, usage = await pool.run(("broadcast", "select", "answer"))
    assert models is not None
    agents = model_query_agents(pool.profile, models, PromptLibrary(), tokenizer, scope)
    scores = Scores(agents)
    agents = replace(agents, cut=scores)
    if not options.whole:
        agents = replace(agents, broadcaster=NoBroadcast(), answerer=NoAnswer())
    settings = AskSettings(max_evidence_tokens=options.budget)
    answer = await ask(question.text, scope, agents, settings, tokenizer, usage=usage)
    if options.whole:
        print(f"  {answer.answer[:300]!r}")
    return row_of(question, pages[question.document], answer, scores)


def summary(rows: Sequence[Row]) -> str:
    """The figures that the documentation quotes."""
    count = len(rows)
    first = {row.document: row for row in reversed(rows)}
    later = [row for row in rows if row is not first[row.document]]
    cached = sum(row.cached_tokens for row in later)
    prompt = sum(row.prompt_tokens for row in later)
    lines = [
        f"right page among those passed: {sum(row.rank is not None for row in rows)} of {count}",
        f"right page first: {sum(row.rank == 1 for row in rows)} of {count}"
        f" (BM25: {sum(row.bm25_rank == 1 for row in rows)})",
        f"right page in first 2: {sum((row.rank or 99) <= 2 for row in rows)} of {count}"
        f" (BM25: {sum(row.bm25_rank <= 2 for row in rows)})",
        f"pages passed on: {sum(row.pages_passed for row in rows) / count:.1f} a question",
        f"failed regions: {sum(row.failed for row in rows)}",
    ]
    if later:
        cold = sum(row.seconds for row in first.values()) / len(first)
        warm = sum(row.seconds for row in later) / len(later)
        lines += [
            f"cached share of select prompts after the first question: {cached / prompt:.3f}",
            f"seconds, first question of a text / later ones: {cold:.1f} / {warm:.1f}"
            f" = {cold / warm:.1f}x",
        ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--probe", type=Path, required=True)
    parser.add_argument("--model", required=True, help="GGUF file, or hf:OWNER/REPOSITORY:FILE")
    parser.add_argument("--document", action="append", help="only this text of the probe")
    parser.add_argument("--questions", type=int, help="only the first N")
    parser.add_argument("--budget", type=int, default=3000, help="tokens of evidence")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--whole", action="store_true", help="cards, broadcast and answer as well")
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    parser.add_argument("--out", type=Path, help="rows as JSON lines")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    rows = asyncio.run(measure(options))
    if options.out:
        options.out.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))
    print(summary(rows))
    print(f"{time.perf_counter() - began:.0f} s in all; python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
