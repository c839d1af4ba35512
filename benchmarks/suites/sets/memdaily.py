"""MemDaily (MemSim), Chinese: messages of a year. Gold unit and unit: a message.

One person's messages are few, so twenty trajectories are told one after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.suites.base import Bundle, Case, Json, Options, TextBuilder, gold_of, read_json
from hmars.coverage import Span

PACK = 20
FILES = ("03_comparative_roles", "04_aggregative_hybrid", "06_noisy_events")
VOID = "[ERRORQ]"


def load(options: Options) -> Iterator[Bundle]:
    folder = options.folder("memdaily")
    wanted = options.extra.get("memdaily", ",".join(FILES)).split(",")
    for name in wanted:
        trajectories: list[Json] = read_json(folder / f"{name}.json")
        for at in range(0, len(trajectories), PACK):
            yield _pack(trajectories[at : at + PACK], name, at // PACK + 1)


def _pack(trajectories: Sequence[Json], kind: str, number: int) -> Bundle:
    name = f"memdaily/{kind}/{number}"
    builder = TextBuilder()
    units: list[Span] = []
    cases: list[Case] = []
    for trajectory in trajectories:
        by_id: dict[int, int] = {}
        for message in trajectory["message_list"]:
            by_id[int(message["mid"])] = len(units)
            when = f"{message['time']} {message['place']}"
            units.append(builder.turn("我", str(message["message"]), when=when))
        for question in trajectory["question_list"]:
            chosen = [by_id[int(step)] for step in question["target_step_id"]]
            if VOID in question["question"] or not chosen:
                continue
            cases.append(
                Case(
                    id=f"{name}/{trajectory['tid']}/{question['qid']}",
                    set="memdaily",
                    question=str(question["question"]),
                    answers=(str(question["answer"]),),
                    gold=gold_of(units[at] for at in chosen),
                    kind=kind,
                    choices=tuple(sorted(question["choices"].items())),
                    units=frozenset(chosen),
                )
            )
    return Bundle(builder.document(name, name, "dialogue"), tuple(cases), tuple(units))
