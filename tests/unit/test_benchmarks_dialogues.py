"""The dialogue benchmark on a conversation of three questions with known gold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks import dialogues
from benchmarks.suites.base import Bundle, Case, Options, TextBuilder, gold_of
from hmars.tokens import load_tokenizer


def tiny(options: Options) -> Iterator[Bundle]:
    builder = TextBuilder()
    spans = [
        builder.turn("Ana", f"Lamp {number} hangs on the pier of the {name}.", when="session 1")
        for number, name in enumerate(["heron", "otter", "raven", "stoat"] * 10)
    ]
    cases = tuple(
        Case(f"tiny/{name}", "tiny", f"Which lamp hangs at the {name}?", gold=gold_of([spans[at]]))
        for at, name in enumerate(["heron", "otter", "raven"])
    )
    yield Bundle(builder.document("tiny", "tiny", "dialogue"), cases, tuple(spans))


async def test_both_systems_fill_the_same_budget_and_are_scored_on_the_same_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(dialogues.SETS, "tiny", tiny)
    found = await dialogues.measure("tiny", Options(limit=3), [400, 4000])
    assert (found.documents, found.turns) == (1, 40)
    assert set(found.turns_hmars[4000]) == {"tiny/heron", "tiny/otter", "tiny/raven"}
    for recall in (found.turns_hmars, found.turns_bm25, found.units_hmars, found.units_bm25):
        assert set(recall[4000].values()) == {1.0}
    line = dialogues.row("tiny", found, [400, 4000])
    assert line.startswith("| tiny | 3 | 1 | 40 |") and "+0.000 [+0.000, +0.000]" in line


def test_bm25_takes_whole_turns_best_first_and_leaves_no_budget_unused() -> None:
    (bundle,) = tiny(Options())
    tokenizer = load_tokenizer(dialogues.profile_tokenizer())
    ranker = dialogues.TurnRanker(bundle.document, tokenizer)
    ranked = ranker.rank("Which lamp hangs at the otter?")
    texts = [bundle.document.text[slice(*ranker.spans[at])] for at in ranked]
    assert all("otter" in text for text in texts[:10])
    assert len(ranked) == 40
    chosen = ranker.fill(ranked, 60)
    used = sum(tokenizer.count(bundle.document.text[start:end]) for start, end in chosen)
    assert 0 < used <= 60
