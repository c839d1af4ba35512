"""RealMem: sessions of one persona over months. Gold unit: the turn a memory was taken from.

Unit of the filter: a session. A question sees the sessions before its own only, so each question
has a document of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.suites.base import Bundle, Case, Json, Options, TextBuilder, read_json
from hmars.coverage import GoldUnit, Span


def load(options: Options) -> Iterator[Bundle]:
    least = int(options.extra.get("least_units", "1"))
    for path in sorted(options.folder("realmem").glob("*_dialogues_*.json")):
        yield from _persona(read_json(path)["dialogues"], path.name.split("_dialogues")[0], least)


def _persona(sessions: list[Json], persona: str, least: int) -> Iterator[Bundle]:
    numbers = {str(session["session_uuid"]): at for at, session in enumerate(sessions)}
    for at, session in enumerate(sessions):
        turns = session["dialogue_turns"]
        for number, turn in enumerate(turns[:-1]):
            used: list[Json] = turns[number + 1].get("memory_used") or []
            named = {numbers[str(memory["session_uuid"])] for memory in used}
            earlier = {other for other in named if other < at}
            if turn.get("is_query") and earlier and len(earlier) >= least:
                yield _case(sessions[:at], persona, turn, turns[number + 1], earlier)


def _case(
    sessions: list[Json],
    persona: str,
    turn: Json,
    reply: Json,
    earlier: set[int],
) -> Bundle:
    name = f"realmem/{persona}/{turn['query_id']}"
    builder = TextBuilder()
    said: list[list[Span]] = []
    for number, session in enumerate(sessions, start=1):
        when = f"session {number} | {session['current_time']}"
        said.append(
            [
                builder.turn(str(item["speaker"]), str(item["content"]), when=when)
                for item in session["dialogue_turns"]
            ]
        )
    units = tuple((spans[0][0], spans[-1][1]) for spans in said if spans)
    numbers = {str(session["session_uuid"]): at for at, session in enumerate(sessions)}
    gold: dict[Span, None] = {}
    for memory in reply["memory_used"]:
        at = numbers.get(str(memory["session_uuid"]))
        if at is not None:
            gold[_source(sessions[at], said[at], str(memory["content"]))] = None
    case = Case(
        id=name,
        set="realmem",
        question=str(turn["content"]),
        answers=(str(reply["content"]),),
        gold=tuple(GoldUnit((span,)) for span in gold),
        scoring="judge",
        kind=str(turn.get("category_name") or ""),
        units=frozenset(earlier),
    )
    return Bundle(builder.document(name, name, "dialogue"), (case,), units)


def _source(session: Json, spans: list[Span], content: str) -> Span:
    """The turn a memory was taken from, by its snapshot; the session where that is not told."""
    for memory in session["extracted_memory"]:
        if str(memory["content"]) != content or int(memory.get("source_turn") or 0) == 0:
            continue
        snapshot = " ".join(str(memory.get("source_content_snapshot") or "").split())[:80]
        for turn, span in zip(session["dialogue_turns"], spans, strict=True):
            if snapshot and snapshot in " ".join(str(turn["content"]).split()):
                return span
    return (spans[0][0], spans[-1][1])
