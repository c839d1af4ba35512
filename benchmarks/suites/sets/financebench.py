"""FinanceBench: filings as page text. Gold unit and unit: a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from benchmarks.suites.base import (
    Bundle,
    Case,
    Json,
    Options,
    TextBuilder,
    gold_of,
    read_lines,
    read_text,
)
from hmars.coverage import Span


def load(options: Options) -> Iterator[Bundle]:
    folder = options.folder("financebench")
    asked: defaultdict[str, list[Json]] = defaultdict(list)
    for item in read_lines(folder / "questions.jsonl"):
        asked[str(item["doc_name"])].append(item)
    for name, items in sorted(asked.items()):
        builder = TextBuilder()
        pages = read_text(folder / "text" / f"{name}.txt").split("\f")
        spans: list[Span] = []
        for number, page in enumerate(pages, start=1):
            builder.place(f"p. {number}")
            spans.append(builder.add(page))
            builder.add("\f")
        cases = tuple(_case(item, spans) for item in items)
        yield Bundle(builder.document(f"financebench/{name}", name), cases, tuple(spans))


def _case(item: Json, spans: list[Span]) -> Case:
    pages = sorted({int(part["evidence_page_num"]) for part in item["evidence"]})
    return Case(
        id=f"financebench/{item['financebench_id']}",
        set="financebench",
        question=str(item["question"]),
        answers=(str(item["answer"]),),
        gold=gold_of(spans[page] for page in pages),
        scoring="judge",
        kind=str(item["question_type"]),
        units=frozenset(pages),
    )
