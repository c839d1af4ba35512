"""LoCoMo: ten dialogues of many sessions. Gold unit and unit: a turn.

Labels that a third party found wrong are left out; evidence strings that name no turn as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.suites.base import Bundle, Case, Json, Options, TextBuilder, gold_of, read_json
from hmars.coverage import Span

KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


def load(options: Options) -> Iterator[Bundle]:
    folder = options.folder("locomo")
    wrong = {item["question_id"] for item in read_json(folder / "audit_errors.json")}
    for number, item in enumerate(read_json(folder / "locomo10.json")):
        yield _dialogue(item, number, frozenset(wrong))


def _dialogue(item: Json, number: int, wrong: frozenset[str]) -> Bundle:
    name = f"locomo/{number}"
    builder = TextBuilder()
    turns: dict[str, Span] = {}
    conversation = item["conversation"]
    session = 1
    while f"session_{session}_date_time" in conversation:
        when = str(conversation[f"session_{session}_date_time"])
        for turn in conversation.get(f"session_{session}", []):
            text = str(turn["text"])
            if turn.get("blip_caption"):
                text += f" [shares an image: {turn['blip_caption']}]"
            turns[str(turn["dia_id"])] = builder.turn(
                str(turn["speaker"]), text, when=f"session {session} | {when}"
            )
        session += 1
    numbers = {identifier: at for at, identifier in enumerate(turns)}
    cases: list[Case] = []
    for at, question in enumerate(item["qa"]):
        named = [part for text in question["evidence"] for part in re.split(r"[;,\s]+", text)]
        ids = sorted({part for part in named if part in turns}, key=lambda part: numbers[part])
        category = int(question["category"])
        if f"locomo_{number}_qa{at}" in wrong or not ids:
            continue
        cases.append(
            Case(
                id=f"{name}/{at}",
                set="locomo",
                question=str(question["question"]),
                answers=(str(question["answer"]),) if "answer" in question else (),
                gold=gold_of(turns[identifier] for identifier in ids),
                scoring="abstain" if category == 5 else "short",
                kind=KINDS[category],
                units=frozenset(numbers[identifier] for identifier in ids),
            )
        )
    return Bundle(builder.document(name, name, "dialogue"), tuple(cases), tuple(turns.values()))
