"""BEAM: chats of 100K, 500K and 1M tokens with ten kinds of questions. Gold unit: a message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from benchmarks.suites.base import Bundle, Case, Json, Options, TextBuilder, gold_of, read_json
from hmars.coverage import Span

_TAG = re.compile(r"\s*->->.*\Z", re.DOTALL)
"""A tag of the generator that tells where a message stands."""
_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
SIZES = ("100K", "500K", "1M")


def load(options: Options) -> Iterator[Bundle]:
    folder = options.folder("beam")
    for size in options.extra.get("beam", ",".join(SIZES)).split(","):
        chats = sorted((folder / size).iterdir(), key=lambda path: int(path.name))
        for chat in chats:
            yield _chat(chat, f"beam/{size}/{chat.name}")


def _chat(folder: Path, name: str) -> Bundle:
    builder = TextBuilder()
    messages: dict[int, Span] = {}
    for batch in read_json(folder / "chat.json"):
        for turns in batch["turns"]:
            for message in turns:
                text = _TAG.sub("", str(message["content"]))
                when = str(message.get("time_anchor") or "")
                span = builder.turn(str(message["role"]), text, when=when)
                messages[int(message["id"])] = span
    order = sorted(messages)
    number_of = {identifier: number for number, identifier in enumerate(order)}
    cases: list[Case] = []
    for ability, questions in read_json(folder / "probing_questions.json").items():
        for number, question in enumerate(questions, start=1):
            ids = sorted(
                {
                    identifier
                    for identifier in _flat(question.get("source_chat_ids", []))
                    if identifier in messages
                }
            )
            answer = next((str(question[key]) for key in _ANSWERS if key in question), "")
            rubric = "\n".join(f"- {line}" for line in question.get("rubric", []))
            cases.append(
                Case(
                    id=f"{name}/{ability}/{number}",
                    set="beam",
                    question=str(question["question"]),
                    answers=(f"{answer}\nRubric:\n{rubric}" if rubric else answer,),
                    gold=gold_of(messages[identifier] for identifier in ids),
                    scoring="abstain" if ability == "abstention" else "judge",
                    kind=ability,
                    units=frozenset(number_of[identifier] for identifier in ids),
                )
            )
    document = builder.document(name, name, "dialogue")
    return Bundle(document, tuple(cases), tuple(messages[identifier] for identifier in order))


def _flat(value: Json) -> Iterator[int]:
    if isinstance(value, dict):
        for part in cast(dict[str, Json], value).values():
            yield from _flat(part)
    elif isinstance(value, list):
        for part in cast(list[Json], value):
            yield from _flat(part)
    elif isinstance(value, int):
        yield value
