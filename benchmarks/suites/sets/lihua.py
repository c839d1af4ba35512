"""LiHua-World: a year of chat as one history. Gold unit and unit: the messages of one stamp."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.suites.base import Bundle, Case, Options, TextBuilder, gold_of, read_json
from hmars.coverage import Span


def load(options: Options) -> Iterator[Bundle]:
    folder = options.folder("lihua_world")
    builder = TextBuilder()
    spans: dict[str, Span] = {}
    for path in sorted(folder.glob("*/*.txt"), key=lambda path: path.stem):
        start = builder.length
        first, _, rest = path.read_text(encoding="utf-8").partition("\n")
        when = first.removeprefix("Time:").strip()
        for line in rest.splitlines():
            speaker, colon, text = line.partition(":")
            if text.strip():
                builder.turn(speaker.strip(), text.strip(), when=when)
            elif line.strip() and not colon:
                builder.turn("unknown", line.strip(), when=when)
        spans[path.stem.replace("_", "")] = (start, builder.length)
    stems = {stem: number for number, stem in enumerate(spans)}
    cases: list[Case] = []
    for number, item in read_json(folder / "query_set.json").items():
        refs = [re.sub(r"\D", "", part) for part in re.split("<and>|<or>", str(item["evidence"]))]
        found = sorted({ref for ref in refs if ref in spans})
        unanswerable = item["type"] == "Null"
        if not found and not unanswerable:
            continue
        cases.append(
            Case(
                id=f"lihua_world/{number}",
                set="lihua_world",
                question=str(item["question"]),
                answers=(str(item["answer"]),),
                gold=gold_of(spans[ref] for ref in found),
                scoring="abstain" if unanswerable else "short",
                kind=str(item["type"]),
                units=frozenset(stems[ref] for ref in found),
            )
        )
    document = builder.document("lihua_world", "A year of chat", "dialogue")
    yield Bundle(document, tuple(cases), tuple(spans.values()))
