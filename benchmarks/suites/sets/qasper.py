"""QASPER: papers packed into one document. Gold unit: a paragraph."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.suites.base import Bundle, Case, Json, Options, TextBuilder, gold_of, read_lines


def load(options: Options) -> Iterator[Bundle]:
    builder = TextBuilder()
    cases: list[Case] = []
    for paper in read_lines(options.folder("qasper") / "qasper_dev_14.jsonl"):
        name = f"arXiv {paper['article_id']}"
        builder.heading(name)
        offset, _ = builder.add(str(paper["text"]))
        builder.add("\n\n\n")
        cases += [
            _case(name, offset, question)
            for question in paper["questions"]
            if question["evidence_spans"]
        ]
    yield Bundle(builder.document("qasper/packed", "Fourteen papers"), tuple(cases))


def _case(paper: str, offset: int, question: Json) -> Case:
    return Case(
        id=f"qasper/{question['qid']}",
        set="qasper",
        question=f"In the paper {paper}: {question['question']}",
        answers=tuple(str(span) for span in question["extractive_spans"]),
        gold=gold_of(
            (int(start) + offset, int(end) + offset) for start, end in question["evidence_spans"]
        ),
        scoring="short" if question["extractive_spans"] else "none",
    )
