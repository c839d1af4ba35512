"""Needle tasks after RULER, generated from a seed: no download, and no text of anybody else.

Seven tasks: one needle, several keys, several values, several queries, variable tracking, common
words, frequent words. Lengths are thousands of words of filler.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence

from benchmarks.suites.base import Bundle, Case, Options, TextBuilder, gold_of, rank_of
from hmars.coverage import Span

LENGTHS = (4, 16)
PER_TASK = 4
_ONSETS = (*"bdfgklmnprstvz", "br", "dr", "fl", "gr", "kl", "pr", "st", "tr")
_NUCLEI = ["a", "e", "i", "o", "u", "ai", "ei", "ou"]
_CODAS = ("", "", "l", "m", "n", "r", "s", "t")
_FILLER = (
    "The {0} was left beside the {1} until somebody came for it.",
    "Nobody had asked about the {0}, and the {1} was quiet.",
    "A {0} is mended in the morning; a {1} waits for the evening.",
    "They carried the {0} over the bridge and rested near the {1}.",
    "In a dry year the {0} is small, and the {1} is smaller still.",
    "The road to the {0} runs past the {1} and turns away from the water.",
)


def word(generator: random.Random, syllables: int = 3) -> str:
    """A word that is in no dictionary."""
    return "".join(
        generator.choice(_ONSETS) + generator.choice(_NUCLEI) + generator.choice(_CODAS)
        for _ in range(syllables)
    )


def load(options: Options) -> Iterator[Bundle]:
    count = PER_TASK
    lengths = options.lengths or LENGTHS
    if options.limit is not None:
        count = max(1, options.limit // (len(TASKS) * len(lengths)))
    made = 0
    for length in lengths:
        for number in range(count):
            for task, make in TASKS.items():
                if options.limit is not None and made >= options.limit:
                    return
                made += 1
                generator = random.Random(rank_of(options.seed, task, length, number))
                name = f"ruler/{task}/{length}k/{number + 1}"
                yield make(name, task, generator, length * 1_000)


def _filler(generator: random.Random, words: int) -> list[str]:
    nouns = [word(generator) for _ in range(300)]
    sentences: list[str] = []
    total = 0
    while total < words:
        sentence = generator.choice(_FILLER).format(*generator.sample(nouns, 2))
        sentences.append(sentence)
        total += sentence.count(" ") + 1
    return sentences


def _scatter(
    generator: random.Random, words: int, needles: Sequence[str], *, in_order: bool = False
) -> tuple[TextBuilder, list[Span]]:
    """Filler with each needle between two sentences at a random place."""
    sentences = _filler(generator, words)
    places = generator.sample(range(len(sentences)), len(needles))
    if in_order:
        places.sort()
    needle_at = dict(zip(places, range(len(needles)), strict=True))
    builder = TextBuilder()
    spans: list[Span] = [(0, 0)] * len(needles)
    for at, sentence in enumerate(sentences):
        if at in needle_at:
            spans[needle_at[at]] = builder.add(needles[needle_at[at]])
            builder.add(" ")
        builder.add(sentence + ("\n\n" if at % 12 == 11 else " "))
    return builder, spans


def _bundle(
    name: str,
    task: str,
    builder: TextBuilder,
    question: str,
    answers: Sequence[str],
    gold: Sequence[Span],
) -> Bundle:
    case = Case(
        id=name,
        set="ruler",
        question=question,
        answers=tuple(answers),
        gold=gold_of(gold),
        scoring="all",
        kind=task,
        labels=(("words", name.split("/")[2]),),
    )
    return Bundle(builder.document(name, name), (case,))


def _number(generator: random.Random) -> str:
    return str(generator.randrange(1_000_000, 10_000_000))


def _needle(key: str, value: str) -> str:
    return f"One of the special numbers for {key} is: {value}."


def _niah(keys: int, values: int, queries: int) -> Callable[..., Bundle]:
    def make(name: str, task: str, generator: random.Random, words: int) -> Bundle:
        names = [word(generator, 4) for _ in range(keys)]
        table = {key: [_number(generator) for _ in range(values)] for key in names}
        pairs = [(key, value) for key in names for value in table[key]]
        builder, spans = _scatter(generator, words, [_needle(*pair) for pair in pairs])
        asked = names[:queries]
        wanted = [at for at, (key, _) in enumerate(pairs) if key in asked]
        question = f"What are all the special numbers for {', '.join(asked)} in the text?"
        return _bundle(
            name,
            task,
            builder,
            question,
            [pairs[at][1] for at in wanted],
            [spans[at] for at in wanted],
        )

    return make


def _tracking(name: str, task: str, generator: random.Random, words: int) -> Bundle:
    value = _number(generator)
    chain = [word(generator, 2).upper() for _ in range(5)]
    other = [word(generator, 2).upper() for _ in range(5)]
    needles = [f"VAR {chain[0]} = {value}."]
    needles += [f"VAR {right} = VAR {left}." for left, right in itertools.pairwise(chain)]
    distractors = [f"VAR {other[0]} = {_number(generator)}."]
    distractors += [f"VAR {right} = VAR {left}." for left, right in itertools.pairwise(other)]
    builder, spans = _scatter(generator, words, needles + distractors, in_order=True)
    question = f"Which variables are assigned the value {value} in the text, directly or not?"
    return _bundle(name, task, builder, question, chain, spans[: len(chain)])


def _common(name: str, task: str, generator: random.Random, words: int) -> Bundle:
    """Ten words occur thirty times each, the others three times."""
    common = [word(generator) for _ in range(10)]
    rare = [word(generator) for _ in range(max(10, (words - 300) // 3))]
    return _list(name, task, generator, common * 30 + rare * 3, common, "ten most common")


def _frequent(name: str, task: str, generator: random.Random, words: int) -> Bundle:
    """Counts fall off as 1/rank^2 (zeta); the three most frequent are asked for."""
    vocabulary = [word(generator) for _ in range(max(50, words // 40))]
    weights = [1 / (rank + 1) ** 2 for rank in range(len(vocabulary))]
    drawn = generator.choices(vocabulary, weights, k=words)
    return _list(name, task, generator, drawn, vocabulary[:3], "three most frequent")


def _list(
    name: str,
    task: str,
    generator: random.Random,
    drawn: list[str],
    answers: list[str],
    asked: str,
) -> Bundle:
    generator.shuffle(drawn)
    builder = TextBuilder()
    for number, item in enumerate(drawn, start=1):
        builder.add(f"{number}. {item}\n")
    return _bundle(name, task, builder, f"What are the {asked} words in the list?", answers, ())


TASKS: dict[str, Callable[[str, str, random.Random, int], Bundle]] = {
    "niah_single": _niah(1, 1, 1),
    "niah_multikey": _niah(8, 1, 1),
    "niah_multivalue": _niah(1, 4, 1),
    "niah_multiquery": _niah(4, 1, 4),
    "variable_tracking": _tracking,
    "common_words": _common,
    "frequent_words": _frequent,
}
