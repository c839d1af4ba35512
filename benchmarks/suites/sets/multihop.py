"""HotpotQA, 2WikiMultiHopQA and MuSiQue packed into documents of N paragraphs (S-PARSER 4 and 5.1).

A document is the gold paragraphs and paragraphs of other questions from the same set, laid out as
MemAgent does. Paragraphs that bear the title of a gold one are left out. Controls move the gold
paragraphs mechanically: to a depth, into the logical or the reverse order, near or far apart.

With `--together K` one document holds the paragraphs of K questions, and each is asked of it: the
gold of the others stands among the distractors, and a text is read once for K questions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.suites.base import (
    Bundle,
    Case,
    Json,
    Options,
    TextBuilder,
    gold_of,
    rank_of,
    read_json,
    read_lines,
    spread,
)
from hmars.errors import ConfigError

SETS = ("hotpotqa", "2wiki", "musique")
LENGTHS = (50, 200)
Control = Literal["none", "position", "order", "distance"]
VALUES: dict[Control, tuple[str, ...]] = {
    "none": ("random",),
    "position": ("0", "25", "50", "75", "100"),
    "order": ("logical", "reverse"),
    "distance": ("0", "25", "50", "100"),
}
"""Depth of the gold block in percent; order of the gold; gap between gold in percent of room."""


@dataclass(frozen=True)
class Paragraph:
    title: str
    text: str


@dataclass(frozen=True)
class Question:
    id: str
    set: str
    kind: str
    question: str
    answers: tuple[str, ...]
    gold: tuple[Paragraph, ...]
    """In the order in which reasoning needs them, as far as the annotation tells."""
    context: tuple[Paragraph, ...]


def load(options: Options, control: Control = "none") -> Iterator[Bundle]:
    """The documents of one set after another.

    Raises:
        ConfigError: the options do not go together; before the first document, not after it.
    """
    found = _loaded(options, control)
    return iter(list(found)) if options.together > 1 else found


def _loaded(options: Options, control: Control) -> Iterator[Bundle]:
    folder = options.folder("multihop")
    for name in _sets(options, control):
        questions, pool = read(folder, name)
        if control == "order":
            questions = [item for item in questions if ordered(item)]
        chosen = _limited(questions, name, control, options)
        if options.together > 1:
            yield from _shared(chosen, pool, control, options)
            continue
        for question in chosen:
            for length in options.lengths or LENGTHS:
                for value in VALUES[control]:
                    yield pack(question, pool, length, control, value, options.seed)


def _shared(
    questions: Sequence[Question], pool: Sequence[Paragraph], control: Control, options: Options
) -> Iterator[Bundle]:
    if control != "none":
        raise ConfigError(
            "--together packs paragraphs anywhere: it goes with the suite 'multihop'."
        )
    for length in options.lengths or LENGTHS:
        for batch in batched(questions, options.together):
            yield pack_together(batch, pool, length, options.seed)


def batched(questions: Sequence[Question], size: int) -> Iterator[Sequence[Question]]:
    for start in range(0, len(questions), size):
        yield questions[start : start + size]


def _sets(options: Options, control: Control) -> tuple[str, ...]:
    """The sets to read; HotpotQA does not say which paragraph reasoning needs first."""
    names = options.sets or SETS
    unknown = sorted(set(names) - set(SETS))
    if unknown:
        raise ConfigError(f"This suite has no set '{unknown[0]}': use {', '.join(SETS)}.")
    return tuple(name for name in names if control != "order" or name != "hotpotqa")


def ordered(question: Question) -> bool:
    """The annotation says which gold paragraph comes first in the reasoning."""
    return question.kind in ("compositional", "bridge_comparison") or question.set == "musique"


def _limited(
    questions: list[Question], name: str, control: Control, options: Options
) -> list[Question]:
    limit = options.limit
    if limit is not None:
        documents = len(options.lengths or LENGTHS) * len(VALUES[control])
        sets = _sets(options, control)
        share, more = divmod(max(1, limit // documents), len(sets))
        limit = share + (sets.index(name) < more)
    return spread(
        questions,
        limit,
        stratum=lambda item: item.kind,
        name=lambda item: item.id,
        seed=options.seed,
    )


def pack(
    question: Question,
    pool: Sequence[Paragraph],
    length: int,
    control: Control,
    value: str,
    seed: int,
) -> Bundle:
    """One document of `length` paragraphs with the gold where the control puts it."""
    generator = random.Random(rank_of(seed, question.id, length))
    gold = list(question.gold)
    titles = {paragraph.title for paragraph in gold}
    own = [paragraph for paragraph in question.context if paragraph.title not in titles]
    taken = titles | {paragraph.title for paragraph in own}
    others = [paragraph for paragraph in pool if paragraph.title not in taken]
    room = max(0, length - len(gold))
    filler = own[:room]
    filler += generator.sample(others, min(room - len(filler), len(others)))
    generator.shuffle(filler)
    if value == "reverse":
        gold.reverse()
    places = _places(len(gold), len(filler), control, value, generator)
    ranked: list[Paragraph | None] = [None] * (len(gold) + len(filler))
    for place, paragraph in zip(places, gold, strict=True):
        ranked[place] = paragraph
    name = f"multihop/{question.id}/{length}" + ("" if control == "none" else f"/{control}-{value}")
    rest = iter(filler)
    laid = _Laid(name, [slot or next(rest) for slot in ranked])
    labels = [] if control == "none" else [(control, value)]
    return laid.bundle([laid.case(name, question, length, labels)])


def pack_together(
    questions: Sequence[Question], pool: Sequence[Paragraph], length: int, seed: int
) -> Bundle:
    """One document with the gold of all the questions; each brings its share of distractors."""
    ids = [question.id for question in questions]
    generator = random.Random(rank_of(seed, *ids, length))
    gold = list(dict.fromkeys(part for question in questions for part in question.gold))
    if len(gold) > length:
        raise ConfigError(
            f"{len(questions)} questions have {len(gold)} gold paragraphs, more than a document of "
            f"{length} has room for: take fewer with --together."
        )
    titles = {paragraph.title for paragraph in gold}
    filler: list[Paragraph] = []
    share = (length - len(gold)) // len(questions)
    for question in questions:
        own = [part for part in question.context if part.title not in titles][:share]
        titles.update(part.title for part in own)
        filler += own
    others = [part for part in pool if part.title not in titles]
    room = length - len(gold) - len(filler)
    filler += generator.sample(others, min(room, len(others)))
    paragraphs = gold + filler
    generator.shuffle(paragraphs)
    laid = _Laid(f"multihop/{ids[0]}/{length}x{len(questions)}", paragraphs)
    labels = [("together", str(len(questions)))]
    cases = [
        laid.case(f"multihop/{question.id}/{length}x{len(questions)}", question, length, labels)
        for question in questions
    ]
    return laid.bundle(cases)


class _Laid:
    """Paragraphs as one text, with the place of each."""

    def __init__(self, name: str, paragraphs: Sequence[Paragraph]) -> None:
        self._name = name
        self._paragraphs = paragraphs
        self._builder = TextBuilder()
        self._spans: list[tuple[int, int]] = []
        for number, paragraph in enumerate(paragraphs, start=1):
            self._builder.place(f"Document {number}")
            self._builder.add(f"Document {number}:\n")
            self._spans.append(self._builder.add(f"{paragraph.title}\n{paragraph.text}"))
            self._builder.add("\n\n")

    def case(
        self, name: str, question: Question, length: int, labels: Sequence[tuple[str, str]]
    ) -> Case:
        """The question with the places of its gold in this text."""
        places = [self._paragraphs.index(part) for part in question.gold]
        holding = sum(
            any(answer.lower() in part.text.lower() for answer in question.answers)
            for place, part in enumerate(self._paragraphs)
            if place not in places
        )
        counted = (("paragraphs", str(length)), ("distractors_with_answer", str(holding)))
        return Case(
            id=name,
            set=question.set,
            question=question.question,
            answers=question.answers,
            gold=gold_of(
                [self._spans[place] for place in places], [part.title for part in question.gold]
            ),
            kind=question.kind,
            labels=(*counted, *labels),
            units=frozenset(places),
        )

    def bundle(self, cases: Sequence[Case]) -> Bundle:
        document = self._builder.document(self._name, self._name)
        return Bundle(document, tuple(cases), tuple(self._spans))


def _places(
    gold: int, filler: int, control: Control, value: str, generator: random.Random
) -> list[int]:
    """Where in the document each gold paragraph stands, in the order of the gold."""
    total = gold + filler
    if control == "position":
        first = round(filler * int(value) / 100)
        return list(range(first, first + gold))
    if control == "distance":
        gap = round(filler * int(value) / 100 / max(1, gold - 1))
        step = min(gap + 1, (total - 1) // max(1, gold - 1))
        first = (total - 1 - step * (gold - 1)) // 2
        return [first + step * number for number in range(gold)]
    places = generator.sample(range(total), gold)
    return sorted(places) if control == "order" else places


# ------------------------------------------------------------------ files


def read(folder: Path, name: str) -> tuple[list[Question], list[Paragraph]]:
    """Questions with all their gold, and the pool of paragraphs without doubles by title."""
    if name == "musique":
        questions = [_musique(item) for item in read_lines(folder / "musique_train_100.jsonl")]
        more: list[Paragraph] = []
    else:
        file = {"hotpotqa": "hotpotqa_gold_400", "2wiki": "2wikimultihopqa_dev_503"}[name]
        questions = [_wiki(item, name) for item in read_lines(folder / f"{file}.jsonl")]
        more = _more(folder, name)
    pool: dict[str, Paragraph] = {}
    for paragraph in [p for item in questions for p in item.context] + more:
        pool.setdefault(paragraph.title, paragraph)
    return [item for item in questions if item.gold], list(pool.values())


def _more(folder: Path, name: str) -> list[Paragraph]:
    if name == "2wiki":
        corpus = read_json(folder / "2wikimultihopqa_corpus_6119.json")
        return [Paragraph(str(item["title"]), str(item["text"])) for item in corpus]
    pool = read_lines(folder / "hotpotqa_dev_fullwiki_500.jsonl")
    return [_paragraph(part) for item in pool for part in item["context"]]


def _paragraph(part: Json) -> Paragraph:
    title, sentences = part
    return Paragraph(str(title), " ".join(str(sentence).strip() for sentence in sentences))


def _wiki(item: Json, name: str) -> Question:
    context = tuple(_paragraph(part) for part in item["context"])
    by_title = {paragraph.title: paragraph for paragraph in context}
    titles = list(dict.fromkeys(str(title) for title, _ in item["supporting_facts"]))
    subjects = [str(subject) for subject, _, _ in item.get("evidences", ())]
    # A paragraph comes before another where its title is the subject of an earlier triple.
    titles.sort(key=lambda title: subjects.index(title) if title in subjects else len(subjects))
    return Question(
        id=f"{name}/{item['_id']}",
        set=name,
        kind=str(item["type"]),
        question=str(item["question"]),
        answers=(str(item["answer"]),),
        gold=tuple(by_title[title] for title in titles if title in by_title),
        context=context,
    )


def _musique(item: Json) -> Question:
    paragraphs = {
        int(part["idx"]): Paragraph(str(part["title"]), str(part["paragraph_text"]))
        for part in item["paragraphs"]
    }
    steps = [int(step["paragraph_support_idx"]) for step in item["question_decomposition"]]
    gold = {paragraphs[step].title: paragraphs[step] for step in steps}
    return Question(
        id=f"musique/{item['id']}",
        set="musique",
        kind=str(item["id"]).split("__")[0],
        question=str(item["question"]),
        answers=(str(item["answer"]), *(str(alias) for alias in item["answer_aliases"])),
        gold=tuple(gold.values()),
        context=tuple(paragraphs.values()),
    )
