"""LongMemEval_S: three haystacks of forty sessions. Gold unit: a marked turn, else a session."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.suites.base import Bundle, Case, Json, Options, TextBuilder, gold_of, read_json
from hmars.coverage import Span


def load(options: Options) -> Iterator[Bundle]:
    folder = options.folder("longmemeval")
    corrections: dict[str, list[Json]] = {}
    for item in read_json(folder / "corrections.json"):
        corrections.setdefault(str(item["question_id"]), []).append(item)
    for item in read_json(folder / "longmemeval_s_3.json"):
        yield _haystack(item, corrections.get(str(item["question_id"]), []))


def _haystack(item: Json, corrections: list[Json]) -> Bundle:
    name = f"longmemeval/{item['question_id']}"
    builder = TextBuilder()
    sessions: dict[str, Span] = {}
    marked: dict[str, list[Span]] = {}
    for identifier, when, turns in zip(
        item["haystack_session_ids"],
        item["haystack_dates"],
        item["haystack_sessions"],
        strict=True,
    ):
        start = builder.length
        for turn in turns:
            span = builder.turn(str(turn["role"]), str(turn["content"]), when=str(when))
            if turn.get("has_answer"):
                marked.setdefault(str(identifier), []).append(span)
        sessions[str(identifier)] = (start, builder.length)
    fixed = {entry["question_index"]: entry for entry in corrections}
    asked = list(zip(item["questions"], item["answers"], item["answer_session_ids"], strict=True))
    originals = {number for number in fixed if number is not None}
    cases: list[Case] = []
    for number, (question, answer, ids) in enumerate(asked):
        answer = fixed[number]["answer"] if number in fixed else answer
        spans = [span for part in ids for span in marked.get(str(part), ())]
        gold = spans if number in originals and spans else [sessions[str(part)] for part in ids]
        cases.append(_case(f"{name}/{number}", question, answer, gold, number in originals))
    for entry in corrections:
        if entry["question_index"] is None:
            gold = [span for part in entry["answer_session_ids"] for span in marked[str(part)]]
            cases.append(_case(f"{name}/dropped", entry["question"], entry["answer"], gold, True))
    document = builder.document(name, name, "dialogue")
    return Bundle(document, tuple(cases), tuple(sessions.values()))


def _case(name: str, question: str, answer: str, gold: list[Span], original: bool) -> Case:
    return Case(
        id=name,
        set="longmemeval",
        question=str(question),
        answers=(str(answer),),
        gold=gold_of(gold),
        kind="original" if original else "added",
    )
