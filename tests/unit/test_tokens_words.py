from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hmars.tokens import WordTokenizer, load_tokenizer
from hmars.tokens.words import BLOCK

WORDS = WordTokenizer()
SAMPLES = "ab Z9 .,-\n\r\t\u00a0éßдאبकाไ漢字한😀\u0301\u200d\x00^"
TEXTS = st.text(st.sampled_from(SAMPLES) | st.characters())


def pieces(text: str) -> list[str]:
    starts = [*WORDS.starts(text).tolist(), len(text)]
    return [text[begin:end] for begin, end in itertools.pairwise(starts)]


def test_words_take_the_blank_before_them_and_long_words_count_more() -> None:
    assert pieces("It was  an extraordinarily fine day.") == [
        "It", " was", " ", " an", " extraord", "inarily", " fine", " day", ".",
    ]  # fmt: skip


def test_digits_and_ideographs_count_one_by_one() -> None:
    assert pieces("x 42") == ["x", " ", "4", "2"]
    assert pieces("x漢字。") == ["x", "漢", "字", "。"]
    assert WORDS.count("漢字漢字") == 4


@given(TEXTS)
def test_starts_begin_at_zero_and_always_rise(text: str) -> None:
    starts = WORDS.starts(text).tolist()
    assert "".join(pieces(text)) == text
    assert starts[:1] == ([0] if text else [])
    assert all(left < right for left, right in itertools.pairwise(starts))


@given(TEXTS, st.data())
def test_counts_of_slices_at_token_starts_add_up(text: str, data: st.DataObject) -> None:
    starts = WORDS.starts(text).tolist()
    if not starts:
        return
    cut = data.draw(st.sampled_from(starts))
    assert WORDS.count(text[:cut]) + WORDS.count(text[cut:]) == WORDS.count(text) == len(starts)


def test_a_text_longer_than_a_block_counts_as_its_parts_do() -> None:
    line = "Some words, then a number 1234 and a  gap;\n"
    text = line * (BLOCK // len(line) + 3)
    assert len(text) > BLOCK
    assert WORDS.count(text) == WORDS.count(line) * text.count("\n")


def test_the_default_tokenizer_needs_no_file() -> None:
    assert load_tokenizer("words").identity == "words/1"
    assert load_tokenizer("words").exact_slices
