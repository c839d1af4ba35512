"""CUAD v1: contracts with clauses marked by lawyers. Gold: a clause; unit: 4,000 characters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from benchmarks.suites.base import (
    BenchDocument,
    Bundle,
    Case,
    Json,
    Options,
    gold_of,
    occurrences,
    read_lines,
    read_text,
)
from hmars.coverage import GoldUnit

CHUNK = 4_000
AMBIGUOUS = frozenset({"Document Name", "Parties", "Agreement Date"})
"""Categories whose spans are short strings that stand everywhere."""


def load(options: Options) -> Iterator[Bundle]:
    folder = options.folder("cuad")
    by_contract: defaultdict[str, list[Json]] = defaultdict(list)
    for item in read_lines(folder / "clauses.jsonl"):
        if item["spans"] and item["category"] not in AMBIGUOUS:
            by_contract[item["contract"]].append(item)
    for contract, items in sorted(by_contract.items()):
        text = read_text(folder / contract)
        document = BenchDocument(f"cuad/{contract.split('/')[-1]}", items[0]["title"], text)
        units = tuple((at, min(at + CHUNK, len(text))) for at in range(0, len(text), CHUNK))
        yield Bundle(document, tuple(_case(document, item) for item in items), units)


def _case(document: BenchDocument, item: Json) -> Case:
    spans = sorted({(span["start"], span["end"]) for span in item["spans"]})
    return Case(
        id=f"{document.id}/{item['category']}",
        set="cuad",
        question=(
            "Highlight the parts (if any) of this contract related to "
            f'"{item["category"]}" that should be reviewed by a lawyer.'
        ),
        answers=(str(item["answer"]),) if item["answer"] else (),
        gold=tuple(
            GoldUnit(occurrences(document.text, document.text[start:end])) for start, end in spans
        )
        if all(end > start for start, end in spans)
        else gold_of(spans),
        scoring="none",
        kind=str(item["category"]),
        units=frozenset(
            chunk for start, end in spans for chunk in range(start // CHUNK, (end - 1) // CHUNK + 1)
        ),
    )
