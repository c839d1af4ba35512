"""QMSum: meetings with queries. Gold unit: the part of a ten-turn window that answers the query."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.suites.base import Bundle, Case, Options, TextBuilder, gold_of, read_lines
from hmars.coverage import Span

WINDOW = 10


def load(options: Options) -> Iterator[Bundle]:
    path = options.folder("qmsum") / "test.jsonl"
    for number, meeting in enumerate(read_lines(path), start=1):
        name = f"qmsum/{number}"
        builder = TextBuilder()
        turns = [
            builder.turn(item["speaker"], item["content"], label=f"turn {at}")
            for at, item in enumerate(meeting["meeting_transcripts"])
        ]
        units = tuple(
            (turns[at][0], turns[min(at + WINDOW, len(turns)) - 1][1])
            for at in range(0, len(turns), WINDOW)
        )
        cases: list[Case] = []
        for at, query in enumerate(meeting["specific_query_list"], start=1):
            wanted = {
                turn
                for first, last in query["relevant_text_span"]
                for turn in range(int(first), min(int(last), len(turns) - 1) + 1)
            }
            windows = sorted({turn // WINDOW for turn in wanted})
            cases.append(
                Case(
                    id=f"{name}/{at}",
                    set="qmsum",
                    question=str(query["query"]),
                    answers=(str(query["answer"]),),
                    gold=gold_of(_part(turns, wanted, window) for window in windows),
                    scoring="judge",
                    units=frozenset(windows),
                )
            )
        yield Bundle(builder.document(name, f"Meeting {number}", "dialogue"), tuple(cases), units)


def _part(turns: list[Span], wanted: set[int], window: int) -> Span:
    inside = sorted(turn for turn in wanted if turn // WINDOW == window)
    return (turns[inside[0]][0], turns[inside[-1]][1])
