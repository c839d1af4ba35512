from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmars.lexical import Bm25, Terms, key_phrases, names, passages, sentences
from hmars.tokens import WordTokenizer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two lamps, one lamp", ["two", "lamp", "one", "lamp"]),
        ("It cost $2,500 or 4.2%", ["it", "cost", "2500", "or", "4.2"]),
        ("call __init__ now", ["call", "__init__", "init", "now"]),
        ("lit and kept lights", ["light", "and", "keep", "light"]),
        ("sys.path", ["sys.path", "sys", "path"]),
        ("the harbour's crane isn’t red", ["the", "harbour", "crane", "is", "red"]),
        ("on 2024-05-01", ["on", "2024-05-01", "2024", "05", "01"]),
        ("港口有十二盏灯", ["港口", "口有", "有十", "十二", "二盏", "盏灯"]),
        ("हिन्दी किताबें", ["हिन्दी", "किताबें"]),
        ("Zoë ZOE\u0308 Straße", ["zoe", "zoe", "strass"]),
        ("ﬁne １２", ["fine", "12"]),
        ("co\u00adoperate", ["cooper"]),
    ],
)
def test_words_that_a_reader_calls_the_same_become_the_same_term(
    text: str, expected: list[str]
) -> None:
    assert Terms().of(text) == expected


def test_question_words_are_not_content_and_names_of_methods_stay_whole() -> None:
    terms = Terms()
    assert terms.content("How many lamps does pier 9 have?") == ["lamp", "pier", "9"]
    assert "reverse_words" in terms.content("What does str.reverse_words() return?")


def test_a_question_of_question_words_only_keeps_them() -> None:
    assert Terms().content("Who is he?") == ["who", "is", "he"]


@given(st.text())
def test_sentences_tile_any_text(text: str) -> None:
    spans = sentences(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(start < end for start, end in spans)


@given(st.text(alphabet=" \n\t.。!a-1)*", max_size=3000))
def test_sentences_tile_text_made_of_edges(text: str) -> None:
    assert "".join(text[start:end] for start, end in sentences(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Dr. Orla Venn paid 4.2 euros. She left!",
            ["Dr. Orla Venn paid 4.2 euros. ", "She left!"],
        ),
        ("See e.g. the crane. Next.", ["See e.g. the crane. ", "Next."]),
        ("他走了。她来了！好", ["他走了。", "她来了！", "好"]),
        ("यह पहला है। यह दूसरा है।", ["यह पहला है। ", "यह दूसरा है।"]),
        ("هل وصل؟ نعم وصل.", ["هل وصل؟ ", "نعم وصل."]),
        ("List:\n- one\n- two\n", ["List:\n", "- one\n", "- two\n"]),
        ("Ann: hello there\nBo: hi\n", ["Ann: hello there\n", "Bo: hi\n"]),
        (
            "This line was wrapped by a program at some fixed\nwidth and goes on here.\n\nNew.",
            [
                "This line was wrapped by a program at some fixed\nwidth and goes on here.\n\n",
                "New.",
            ],
        ),
        (
            "A line that a program wrapped (see the chapter The\nharbour rules):\n",
            ["A line that a program wrapped (see the chapter The\nharbour rules):\n"],
        ),
        (
            "Run:\n\n    def f():\n        return 1\n",
            ["Run:\n\n", "    def f():\n", "        return 1\n"],
        ),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == expected


def test_a_long_line_without_an_end_is_cut_and_runs_of_dots_are_no_trap() -> None:
    text = "字" * 5000 + "." * 200_000
    spans = sentences(text)
    assert max(end - start for start, end in spans) <= 1000
    assert "".join(text[start:end] for start, end in spans) == text


@given(st.text(max_size=2000), st.integers(1, 40), st.integers(0, 99))
def test_passages_tile_any_text_at_its_offset(text: str, size: int, offset: int) -> None:
    spans = passages(text, size, WordTokenizer().starts(text), offset=offset)
    assert "".join(text[start - offset : end - offset] for start, end in spans) == text


def test_passages_of_a_page_are_of_nearly_equal_size() -> None:
    tokenizer = WordTokenizer()
    text = "The keeper lit the lamp at dusk. " * 140
    spans = passages(text, 256, tokenizer.starts(text))
    counts = [tokenizer.count(text[start:end]) for start, end in spans]
    assert len(counts) == round(sum(counts) / 256)
    assert max(counts) - min(counts) <= 32


def test_bm25_ranks_the_unit_that_holds_the_rare_word_first() -> None:
    index = Bm25([["pier", "lamp"], ["pier", "crane"], ["pier", "pier"]])
    scores = index.scores({"pier": 1.0, "crane": 1.0})
    assert int(scores.argmax()) == 1
    assert index.rarity("crane") > index.rarity("pier")
    assert index.rarity("whale") > index.rarity("crane")
    assert index.frequency("pier") == 3


def test_bm25_weights_count_and_unknown_words_score_nothing() -> None:
    index = Bm25([["pier"], ["crane"]])
    assert np.allclose(index.scores({"pier": 0.5}), 0.5 * index.scores({"pier": 1.0}))
    assert not index.scores({"whale": 1.0}).any()


@pytest.mark.parametrize("units", [[], [[]], [[], []]])
def test_bm25_over_nothing_scores_nothing(units: list[list[str]]) -> None:
    assert Bm25(units).scores({"pier": 1.0}).tolist() == [0.0] * len(units)


def test_names_dates_amounts_and_identifiers_are_found_in_their_own_spelling() -> None:
    found = names(
        "The keeper Orla Venn paid $2,500 on 12 May 2024. Then Orla Venn called open_gate() "
        "within 30 days, and the Harbour Office of Tamsin Cove agreed."
    )
    assert found.proper[0] == "Orla Venn"
    assert "Harbour Office of Tamsin Cove" in found.proper
    assert found.dates == ("12 May 2024",)
    assert set(found.amounts) == {"$2,500", "30 days"}
    assert found.identifiers == ("open_gate()",)


def test_key_phrases_recur_in_the_text_in_any_script() -> None:
    english = key_phrases("The tidal gate opens. The tidal gate shuts. A keeper watches the gate.")
    assert english[0] == "tidal gate"
    chinese = key_phrases("潮汐闸门打开了，潮汐闸门关上了。守门人看着潮汐闸门。")
    assert "潮汐闸门" in chinese


@given(st.text(max_size=500))
def test_names_and_key_phrases_are_never_invented(text: str) -> None:
    flat = " ".join(text.split()).replace("’", "'")
    found = names(text)
    for name in (*found.proper, *found.identifiers, *found.dates, *found.amounts):
        assert name.replace("’", "'") in flat
    for phrase in key_phrases(text):
        assert phrase in text
