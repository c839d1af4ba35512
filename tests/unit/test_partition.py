from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmars.indexing.graphemes import breaks_grapheme
from hmars.indexing.partition import Partition, partition
from hmars.indexing.text_source import clean, text_source
from hmars.model import Mark, Page, SourceText
from hmars.settings import PartitionSettings
from hmars.tokens import Tokenizer, WordTokenizer
from hmars.tokens.huggingface import EncodeOnlyTokenizer

WORDS = WordTokenizer()
SMALL = PartitionSettings(page_tokens=8, region_tokens=24, group_regions=2)
DEFAULT = PartitionSettings()
SAMPLES = "ab Z9.,!\n\r\t\u00a0éд漢。字한\u1161😀👩🏽\u200d🚀🇵🇹\u0301\u0308\ufe0f\x00^\ud83d\ude00"
TEXTS = st.text(st.sampled_from(SAMPLES) | st.characters(), max_size=400)
LOSSY = EncodeOnlyTokenizer(lambda text: [0] * len(text.lower().split()), "lossy")
WORST = EncodeOnlyTokenizer(lambda text: [0] * (1 if len(text) > 40 else len(text)), "worst")


def cut(
    text: str, limits: PartitionSettings = SMALL, marks: Sequence[Mark] = (),
    tokenizer: Tokenizer = WORDS,
) -> Partition:  # fmt: skip
    return partition(SourceText(text, "s", "t", marks=tuple(marks)), tokenizer, limits, "doc")


def pages(found: Partition) -> list[Page]:
    return [page for region in found.regions for page in region.pages]


def prose(characters: int, seed: int = 1) -> str:
    rng = random.Random(seed)
    syllables = ["ka", "lo", "mer", "tin", "sha", "vo", "rel", "du", "pas", "ith", "en", "ar"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(3000)]

    def sentences() -> Iterator[str]:
        size = 0
        while size < characters:
            sentence = " ".join(rng.choices(words, k=rng.randint(4, 25))).capitalize()
            sentence += rng.choice([". ", ". ", ". ", "? ", ".\n\n"])
            size += len(sentence)
            yield sentence

    return "".join(sentences())


def check(text: str, found: Partition, limits: PartitionSettings, tokenizer: Tokenizer) -> None:
    every = pages(found)
    assert "".join(page.text for page in every) == text
    for number, page in enumerate(every, start=1):
        assert page.index == number
        assert page.text == text[page.start : page.end] != ""
        assert page.tokens == tokenizer.count(page.text) <= limits.page_tokens
        assert page.label
    assert all(region.tokens <= limits.region_tokens for region in found.regions)
    assert [region.index for region in found.regions] == [*range(1, len(found.regions) + 1)]
    members = [region for group in found.groups for region in group.regions]
    assert members == [*range(1, len(found.regions) + 1)]
    assert all(len(group.regions) <= limits.group_regions for group in found.groups)
    assert found.tokens == sum(page.tokens for page in every)


@given(TEXTS, st.sampled_from(["structure", "none"]), st.floats(0, 0.9))
def test_pages_tile_any_text_within_the_limits(text: str, snap: str, tolerance: float) -> None:
    text, _ = clean(text)
    limits = SMALL.model_copy(update={"snap": snap, "tolerance": tolerance})
    check(text, cut(text, limits), limits, WORDS)


@given(TEXTS, st.sampled_from([LOSSY, WORST]))
def test_pages_are_slices_within_the_limit_even_without_offsets(
    text: str, tokenizer: Tokenizer
) -> None:
    text, _ = clean(text * 3)
    limits = SMALL.model_copy(update={"page_tokens": 40, "region_tokens": 100})
    check(text, cut(text, limits, tokenizer=tokenizer), limits, tokenizer)


@given(TEXTS, st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["turn", "place"]))))
def test_pages_tile_whatever_the_marks_are(text: str, places: list[tuple[int, str]]) -> None:
    text, _ = clean(text)
    starts = sorted((start, kind) for start, kind in places if start < len(text))
    marks = [
        Mark(start, f"m {number}", "here", "turn" if kind == "turn" else "place")
        for number, (start, kind) in enumerate(starts)
    ]
    check(text, cut(text, marks=marks), SMALL, WORDS)


@given(
    st.lists(st.sampled_from(["e\u0301", "👩🏽\u200d🚀", "🇵🇹", "\r\n", "1\ufe0f\u20e3", "x", "한"]))
)
def test_no_visible_character_is_parted(characters: list[str]) -> None:
    text = "".join(characters)
    for snap in ("structure", "none"):
        for page in pages(cut(text, SMALL.model_copy(update={"snap": snap}))):
            assert not breaks_grapheme(text, page.start)
            assert text.count("🇵🇹", 0, page.start) * 2 == sum(
                "\U0001f1e6" <= character <= "\U0001f1ff" for character in text[: page.start]
            )


def test_one_character_larger_than_a_page_is_cut_at_the_limit() -> None:
    text = "a" + "\u0301" * 100
    check(text, cut(text), SMALL, WORDS)


@given(TEXTS, TEXTS)
@settings(max_examples=200)
def test_appending_changes_only_the_last_page_region_and_group(text: str, more: str) -> None:
    text = clean(text)[0].rstrip() + "x"  # white space at the end is kept off a page of its own
    before, after = cut(text), cut(text + clean(more)[0])
    kept = [page.text for page in pages(before)[:-1]]
    assert [page.text for page in pages(after)][: len(kept)] == kept
    keys = [region.key for region in before.regions[:-1]]
    assert [region.key for region in after.regions][: len(keys)] == keys
    assert after.groups[: len(before.groups) - 1] == before.groups[:-1]


def test_an_insertion_is_felt_by_its_neighbours_only() -> None:
    text = prose(2_000_000)
    before = cut(text, DEFAULT)
    known = {region.key for region in before.regions}
    for place in (0, len(text) // 2):
        after = cut(text[:place] + "One new paragraph.\n\n" + text[place:], DEFAULT)
        survived = sum(region.key in known for region in after.regions)
        assert survived >= 0.9 * len(after.regions)


def test_pages_begin_at_headings_before_paragraphs_before_sentences() -> None:
    body = "One short sentence here. Another one follows it. " * 3
    text = f"{body}\n\n{body}\n# Lamps\n{body}\n\n{body}"
    found = pages(partition(text_source(text, "s", "t"), WORDS, DEFAULT.model_copy(
        update={"page_tokens": 80, "region_tokens": 80}), "d"))  # fmt: skip
    assert [page.text[:7] for page in found][1] == "# Lamps"
    assert found[1].label == "§ Lamps"
    assert found[1].context == "Lamps"
    assert found[0].label == "lines 1–3"
    assert found[0].context == ""
    sentences = pages(cut(body * 4, DEFAULT.model_copy(update={"page_tokens": 50})))
    assert all(page.text.rstrip().endswith(".") for page in sentences)


def test_without_snapping_pages_are_filled_to_the_limit() -> None:
    limits = SMALL.model_copy(update={"snap": "none"})
    counts = [page.tokens for page in pages(cut("word and more. " * 50, limits))]
    assert set(counts[:-1]) == {SMALL.page_tokens}


def test_turns_stay_whole_unless_one_alone_is_larger_than_a_page() -> None:
    turns = [
        "Mira: nine lamps.\n",
        "Tobin: noted.\n",
        "Mira: " + "long " * 30 + "\n",
        "Ada: yes.\n",
    ]
    starts = [sum(map(len, turns[:number])) for number in range(len(turns))]
    marks = [Mark(s, f"turn {n}", "day 1", "turn") for n, s in enumerate(starts, start=1)]
    found = cut("".join(turns), marks=marks)
    small = [page for page in pages(found) if page.start < starts[2]]
    assert [page.text for page in small] == turns[:2]
    assert small[0].label == "turn 1"
    assert "inside a turn" in found.warnings[0]
    assert {page.context for page in pages(found)} == {"day 1"}
    wide = cut("".join(turns), DEFAULT, marks)
    assert pages(wide)[0].label == "turn 1–4"
    assert not wide.warnings


def test_labels_name_the_places_a_page_covers() -> None:
    text = "word " * 40
    marks = [Mark(0, "p. 34", "", "place"), Mark(50, "p. 35", "", "place"),
             Mark(20, "§ Fees", "Fees", "heading")]  # fmt: skip
    marks.sort(key=lambda mark: mark.start)
    found = pages(cut(text, PartitionSettings(page_tokens=64), marks))
    assert found[0].label == "p. 34–35"
    assert found[0].context == ""
    late = pages(cut(text, PartitionSettings(page_tokens=16, tolerance=0.1), marks))
    assert late[-1].label == "p. 35, § Fees"
    assert late[-1].context == "Fees"


def test_region_keys_do_not_depend_on_the_position() -> None:
    text = "Some words here.\n\n" * 2
    first, second = cut(text).regions[0], cut(text).regions[0]
    assert first.key == second.key
    shifted = partition(SourceText(text, "other", "t"), WORDS, SMALL, "other").regions[0]
    assert shifted.key == first.key


def test_white_space_at_the_end_does_not_make_a_page_of_its_own() -> None:
    for blanks in range(1, 4):  # two tokens each, on pages of eight
        found = pages(cut("one two three four five six seven eight" + " \n" * blanks))
        assert all(page.text.strip() for page in found)


@pytest.mark.parametrize(
    "text",
    ["漢字𠮷文" * 500, "QUJD/+9x" * 2000, '{"k":1,"v":[2,3]},' * 400, "^" * 20_000,
     "لا إله\u064e " * 500, "\x00" * 900, "\n" * 900, "🇵🇹" * 900],
)  # fmt: skip
def test_texts_without_breaks_are_cut_within_the_limits(text: str) -> None:
    limits = PartitionSettings(page_tokens=200, region_tokens=1000)
    found = cut(text, limits)
    check(text, found, limits, WORDS)
    assert len(pages(found)) > 1


def test_a_lossy_tokenizer_leaves_the_text_as_it_is() -> None:
    text = "MiXeD  Case\tStraße:  Ångström\n  second   line\n" * 40
    check(text, cut(text, tokenizer=LOSSY), SMALL, LOSSY)


@pytest.mark.parametrize(
    "name", ["en_war_and_peace.txt", "zh_journey_to_the_west.txt", "ar_quran_single_line.json"]
)
def test_real_books_are_tiled_exactly(name: str) -> None:
    folder = os.environ.get("HMARS_DATA")
    if not folder:
        pytest.skip("HMARS_DATA does not name a folder of books")
    path = Path(folder) / "books_multilingual" / name
    if not path.is_file():
        pytest.skip(f"{name} is not in the folder that HMARS_DATA names")
    text = path.read_text(encoding="utf-8")
    check(text, cut(text, DEFAULT), DEFAULT, WORDS)


def test_ranges_of_rows_are_joined_to_one_range() -> None:
    from hmars.indexing.labels import _span  # pyright: ignore[reportPrivateUsage]

    assert _span("Sheet1 rows 2–20", "Sheet1 rows 41–60") == "Sheet1 rows 2–60"
    assert _span("Sheet1 row 2", "Sheet1 rows 3–9") == "Sheet1 rows 2–9"
    assert _span("Sheet1 rows 2–20", "Sheet2 rows 2–9") == "Sheet1 rows 2–20 – Sheet2 rows 2–9"
    assert _span("p. 34", "p. 35") == "p. 34–35"
