"""Suites: generated ones are deterministic and right about their gold; readers keep offsets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import suites
from benchmarks.suites.base import (
    BenchDocument,
    Bundle,
    Case,
    Options,
    TextBuilder,
    spread,
    spread_cases,
)
from benchmarks.suites.filters import broad, plain_terms
from benchmarks.suites.sets import multihop
from benchmarks.suites.sets.multihop import Paragraph, Question, pack, pack_together
from hmars.errors import ConfigError


def quotes(bundle: Bundle) -> list[str]:
    (case,) = bundle.cases
    return [bundle.document.text[s:e] for unit in case.gold for s, e in unit.places]


# ------------------------------------------------------------------ generated


def test_cumulative_dialogues_have_the_sizes_of_the_paper() -> None:
    bundles = list(suites.load("cumulative", Options()))
    assert len(bundles) == 120
    kinds = [bundle.cases[0].kind for bundle in bundles]
    assert {kinds.count(kind) for kind in set(kinds)} == {24}
    assert len(set(kinds)) == 5
    labels = [dict(bundle.cases[0].labels) for bundle in bundles]
    assert len({label["scenario"] for label in labels}) == 30
    for bundle, label in zip(bundles, labels, strict=True):
        assert 24 <= int(label["turns"]) <= 49
        assert sum(mark.kind == "turn" for mark in bundle.document.marks) == int(label["turns"])


def test_cumulative_gold_is_what_the_user_said_and_holds_the_answer() -> None:
    for bundle in suites.load("cumulative", Options()):
        said = quotes(bundle)
        assert 1 <= len(said) <= 9
        case = bundle.cases[0]
        if case.kind in ("progressive updates", "long-range dependency"):
            assert case.answers[0] in said[0]
        assert all(quote[-1] in ".!?" for quote in said)


def test_only_the_last_of_several_updates_is_gold() -> None:
    for bundle in suites.load("cumulative", Options()):
        case = bundle.cases[0]
        if case.kind == "progressive updates":
            (start, end) = case.gold[0].places[0]
            earlier = bundle.document.text[:start]
            assert "let us say" in earlier
            assert "not what I said" in earlier
            assert "finally" in bundle.document.text[start:end]


@pytest.mark.parametrize("suite", ["cumulative", "ruler"])
def test_generators_give_the_same_for_the_same_seed_and_else_something_new(suite: str) -> None:
    first = list(suites.load(suite, Options(limit=8, lengths=(1,))))
    again = list(suites.load(suite, Options(limit=8, lengths=(1,))))
    other = list(suites.load(suite, Options(limit=8, lengths=(1,), seed=1)))
    assert first == again
    assert first != other


def test_ruler_needles_stand_where_the_gold_says() -> None:
    for bundle in suites.load("ruler", Options(lengths=(1,))):
        case = bundle.cases[0]
        if case.kind.startswith("niah"):
            said = quotes(bundle)
            assert all(answer in quote for answer, quote in zip(case.answers, said, strict=True))
            assert all(bundle.document.text.count(quote) == 1 for quote in said)


def test_variable_tracking_chains_in_order() -> None:
    bundles = suites.load("ruler", Options(lengths=(1,)))
    bundle = next(item for item in bundles if item.cases[0].kind == "variable_tracking")
    said, names = quotes(bundle), bundle.cases[0].answers
    assert said[0].startswith(f"VAR {names[0]} = ")
    for left, right, quote in zip(names, names[1:], said[1:], strict=False):
        assert quote == f"VAR {right} = VAR {left}."
    starts = [unit.places[0][0] for unit in bundle.cases[0].gold]
    assert starts == sorted(starts)


def test_common_words_are_the_most_common() -> None:
    bundles = suites.load("ruler", Options(lengths=(2,)))
    bundle = next(item for item in bundles if item.cases[0].kind == "common_words")
    words = [line.split(". ")[1] for line in bundle.document.text.splitlines()]
    counts = sorted(((words.count(word), word) for word in set(words)), reverse=True)
    assert {word for _, word in counts[:10]} == set(bundle.cases[0].answers)


# ------------------------------------------------------------------ multihop


def question(gold: int = 2) -> Question:
    paragraphs = tuple(Paragraph(f"Gold {number}", f"g{number}") for number in range(gold))
    own = tuple(Paragraph(f"Own {number}", f"o{number}") for number in range(3))
    return Question("t/1", "t", "k", "q?", ("g1",), paragraphs, paragraphs + own)


POOL = [Paragraph(f"Pool {number}", f"p{number}") for number in range(60)]


def test_a_pack_has_its_length_every_title_once_and_the_gold_where_it_says() -> None:
    pool = [*POOL, Paragraph("Gold 0", "a namesake")]
    bundle = pack(question(), pool, 20, "none", "random", 0)
    assert quotes(bundle) == ["Gold 0\ng0", "Gold 1\ng1"]
    text = bundle.document.text
    assert text.count("Document ") == 20
    assert "namesake" not in text
    assert len(bundle.units) == 20


@pytest.mark.parametrize(
    ("control", "value", "places"),
    [
        ("position", "0", {0, 1}),
        ("position", "50", {9, 10}),
        ("position", "100", {18, 19}),
        ("distance", "0", {9, 10}),
        ("distance", "100", {0, 19}),
    ],
)
def test_controls_put_the_gold_where_they_say(
    control: multihop.Control, value: str, places: set[int]
) -> None:
    bundle = pack(question(), POOL, 20, control, value, 0)
    assert set(bundle.cases[0].units) == places
    assert dict(bundle.cases[0].labels)[control] == value


def other_question(shared: Paragraph | None = None) -> Question:
    gold = (Paragraph("Else 0", "e0"), shared or Paragraph("Else 1", "e1"))
    own = tuple(Paragraph(f"Own {number}", f"o{number}") for number in range(2, 9))
    return Question("t/2", "t", "k", "r?", ("e1",), gold, (*gold, *own))


def test_questions_packed_together_share_one_text_that_holds_the_gold_of_each() -> None:
    bundle = pack_together([question(), other_question()], POOL, 20, 0)
    text = bundle.document.text
    found = [
        [text[start:end] for unit in case.gold for start, end in unit.places]
        for case in bundle.cases
    ]
    assert found == [["Gold 0\ng0", "Gold 1\ng1"], ["Else 0\ne0", "Else 1\ne1"]]
    titles = [text[start:end].partition("\n")[0] for start, end in bundle.units]
    assert len(titles) == len(set(titles)) == 20
    assert [
        sorted(text[slice(*bundle.units[at])] for at in case.units) for case in bundle.cases
    ] == ([sorted(part) for part in found])
    assert len({case.id for case in bundle.cases}) == 2


def test_gold_that_two_questions_share_stands_in_their_text_once() -> None:
    bundle = pack_together([question(), other_question(Paragraph("Gold 1", "g1"))], POOL, 20, 0)
    assert bundle.document.text.count("Gold 1\ng1") == 1
    assert bundle.cases[0].gold[1].places == bundle.cases[1].gold[1].places


def test_more_gold_than_a_shared_document_has_room_for_is_an_error() -> None:
    with pytest.raises(ConfigError, match="4 gold paragraphs, more than a document of 3"):
        pack_together([question(), other_question()], POOL, 3, 0)


def test_too_many_questions_for_a_document_are_named_before_the_first_one_is_given(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "multihop"
    folder.mkdir()

    def line(number: int, gold: int) -> dict[str, Any]:
        titles = [f"T{number}.{part}" for part in range(gold)]
        return {
            "_id": str(number),
            "type": "bridge",
            "question": "q?",
            "answer": "a",
            "context": [[title, [f"{title} is here."]] for title in titles],
            "supporting_facts": [[title, 0] for title in titles],
        }

    rows = [line(0, 1), line(1, 1), line(2, 3), line(3, 3)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "hotpotqa_gold_400.jsonl").write_text(text, encoding="utf-8")
    (folder / "hotpotqa_dev_fullwiki_500.jsonl").write_text("", encoding="utf-8")
    options = Options(data=tmp_path, sets=("hotpotqa",), lengths=(4,), together=2)
    with pytest.raises(ConfigError, match="take fewer with --together"):
        multihop.load(options)


def test_a_limit_on_whole_documents_leaves_few_documents_with_all_their_questions() -> None:
    def bundle(name: str, count: int) -> Bundle:
        cases = tuple(Case(f"{name}/{number}", name[0], "q?") for number in range(count))
        return Bundle(BenchDocument(name, name, "text"), cases)

    found = [bundle("a1", 3), bundle("a2", 3), bundle("b1", 2), bundle("b2", 4)]
    chosen = spread_cases(found, Options(limit=6, whole=True))
    assert len(chosen) in (2, 3)
    assert sum(len(item.cases) for item in chosen) == 6
    assert {item.cases[0].set for item in chosen[:2]} == {"a", "b"}
    whole = {item.document.id: len(item.cases) for item in found}
    assert all(len(item.cases) == whole[item.document.id] for item in chosen[:-1])
    assert spread_cases(found, Options(limit=100, whole=True)) != []
    spread_out = spread_cases(found, Options(limit=4))
    assert sum(len(item.cases) for item in spread_out) == 4


def test_a_set_that_multihop_does_not_have_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "multihop").mkdir()
    with pytest.raises(ConfigError, match="no set 'trivia': use hotpotqa, 2wiki, musique"):
        list(multihop.load(Options(data=tmp_path, sets=("trivia",))))


def test_order_changes_the_order_of_the_gold_and_nothing_else() -> None:
    logical = pack(question(4), POOL, 20, "order", "logical", 0)
    reverse = pack(question(4), POOL, 20, "order", "reverse", 0)
    assert logical.cases[0].units == reverse.cases[0].units
    titles = ["Gold 0", "Gold 1", "Gold 2", "Gold 3"]

    def standing(bundle: Bundle) -> list[str]:
        return sorted(titles, key=lambda title: bundle.document.text.index(f"{title}\n"))

    assert standing(logical) == titles
    assert standing(reverse) == titles[::-1]
    gold = set("".join(titles).split())
    rest = [
        [line for line in bundle.document.text.splitlines() if not gold & set(line.split())]
        for bundle in (logical, reverse)
    ]
    assert [line for line in rest[0] if line[:4] in ("Pool", "Own ")] == [
        line for line in rest[1] if line[:4] in ("Pool", "Own ")
    ]


# ------------------------------------------------------------------ files


def test_a_reader_keeps_the_offsets_of_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "cuad"
    (folder / "contracts").mkdir(parents=True)
    text = "Term\r\nThe term is two years.\r\nNotice must be given in writing.\r\n"
    (folder / "contracts" / "a.txt").write_bytes(text.encode())
    start = text.index("The term")
    span = {"start": start, "end": start + 22, "text": "", "occurrences": 1}
    line = {
        "contract": "contracts/a.txt", "title": "A", "category": "Term", "answer": "2 years",
        "spans": [span],
    }  # fmt: skip
    (folder / "clauses.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    (bundle,) = suites.BREADTH["cuad"](Options(tmp_path))
    assert quotes(bundle) == ["The term is two years."]


def test_a_suite_without_its_data_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--data"):
        list(suites.load("qasper", Options()))
    with pytest.raises(ConfigError, match="no folder qasper"):
        list(suites.load("qasper", Options(tmp_path)))
    with pytest.raises(ConfigError, match="no suite 'x'"):
        suites.load("x", Options())


# ------------------------------------------------------------------ choosing


def test_a_larger_limit_keeps_what_a_smaller_one_took_and_spreads_over_strata() -> None:
    items = [f"{stratum}{number}" for stratum in "abc" for number in range(10)]

    def take(limit: int) -> list[str]:
        return spread(items, limit, stratum=lambda item: item[0], name=str, seed=3)

    assert sorted(item[0] for item in take(6)) == list("aabbcc")
    assert set(take(6)) < set(take(9))
    assert take(9) == [item for item in items if item in take(9)]


def test_the_breadth_filter_keeps_what_plain_bm25_cannot_find() -> None:
    builder = TextBuilder()
    hits = [builder.add(f"The red kite number {number} flies.\n") for number in range(4)]
    others = [builder.add(f"Nothing of note in line {number}.\n") for number in range(8)]
    document = builder.document("d", "d")
    units = (*hits, *others)

    def case(name: str, gold: frozenset[int]) -> Case:
        return Case(name, "s", "Which red kite flies?", units=gold)

    easy = case("easy", frozenset(range(4)))
    hard = case("hard", frozenset({0, 5, 6, 7}))
    few = case("few", frozenset({5, 6}))
    kept = broad(Bundle(document, (easy, hard, few), units))
    assert [found.id for found in kept.cases] == ["hard"]


def test_terms_of_scripts_without_spaces_are_characters_and_pairs() -> None:
    assert plain_terms("Das Kind") == ["das", "kind"]
    assert plain_terms("北京市") == ["北", "京", "市", "北京", "京市"]
