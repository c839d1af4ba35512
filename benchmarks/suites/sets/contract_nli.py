"""ContractNLI: NDAs with hypotheses. Gold unit and unit: a span of the annotators (a sentence).

An agreement is shorter than any budget, so twenty are packed into one document and the question
names the agreement it is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.suites.base import Bundle, Case, Json, Options, TextBuilder, gold_of, read_json
from hmars.coverage import Span

PACK = 20


@dataclass(frozen=True)
class Agreement:
    name: str
    text: str
    spans: tuple[Span, ...]
    annotations: dict[str, Json]


def load(options: Options) -> Iterator[Bundle]:
    """Packed agreements. `units` are the spans of all agreements of the pack."""
    agreements, labels = read(options)
    size = int(options.extra.get("pack", PACK))
    for at in range(0, len(agreements), size):
        yield _pack(agreements[at : at + size], labels, f"contract_nli/pack{at // size + 1}")


def read(options: Options) -> tuple[list[Agreement], dict[str, str]]:
    """All agreements in file order, and the hypotheses by key."""
    folder = options.folder("contract_nli")
    agreements: list[Agreement] = []
    labels: dict[str, str] = {}
    for part in ("dev", "test"):
        data = read_json(folder / f"{part}.json")
        labels.update({key: item["hypothesis"] for key, item in data["labels"].items()})
        agreements += [
            Agreement(
                str(item["file_name"]),
                str(item["text"]),
                tuple((int(start), int(end)) for start, end in item["spans"]),
                item["annotation_sets"][0]["annotations"],
            )
            for item in data["documents"]
        ]
    return agreements, labels


def _pack(agreements: Sequence[Agreement], labels: dict[str, str], name: str) -> Bundle:
    builder = TextBuilder()
    units: list[Span] = []
    cases: list[Case] = []
    for agreement in agreements:
        builder.heading(f"Agreement {agreement.name}")
        offset, _ = builder.add(agreement.text)
        builder.add("\n\n\n")
        first = len(units)
        units.extend((start + offset, end + offset) for start, end in agreement.spans)
        for key, found in sorted(agreement.annotations.items()):
            span_numbers: list[int] = found["spans"]
            chosen = [first + number for number in span_numbers]
            cases.append(
                Case(
                    id=f"contract_nli/{agreement.name}/{key}",
                    set="contract_nli",
                    question=(
                        f"In the agreement {agreement.name}, is the following entailed, "
                        f"contradicted or not mentioned? {labels[key]}"
                    ),
                    answers=(_answer(found["choice"]),),
                    gold=gold_of(units[number] for number in chosen),
                    scoring="abstain" if found["choice"] == "NotMentioned" else "short",
                    kind=str(found["choice"]),
                    units=frozenset(chosen),
                )
            )
    return Bundle(builder.document(name, name), tuple(cases), tuple(units))


def _answer(choice: str) -> str:
    return {"Entailment": "entailed", "Contradiction": "contradicted"}.get(choice, "not mentioned")
