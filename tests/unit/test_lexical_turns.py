from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hmars.lexical import turn_headers, turn_passages
from hmars.tokens import WordTokenizer

TOKENIZER = WordTokenizer()
ASKED = "[Ana | Mon 2024-04-01]\nWhere shall we keep the boat over the winter?\n\n"
ANSWERED = f"[Assistant | Mon 2024-04-01]\n{'A dry shed is best, and cover the hull. ' * 20}\n\n"
THANKED = "[Ana | Mon 2024-04-01]\nThen the shed at Tamsin it is.\n\n"


def cut(text: str, size: int, longest: int) -> list[str]:
    spans = turn_passages(text, size, longest, TOKENIZER.starts(text))
    return [text[start:end] for start, end in spans]


def test_a_short_turn_before_a_long_one_is_a_passage_of_its_own_with_its_header() -> None:
    found = cut(ASKED + ANSWERED + THANKED, 64, 100)
    assert found[0] == ASKED
    assert found[-1] == THANKED
    assert found[1].startswith("[Assistant")
    assert "".join(found[1:-1]) == ANSWERED


def test_short_turns_share_a_passage_and_none_is_parted() -> None:
    turns = [f"[Speaker {at} | no time]\nWord number {at} is said.\n\n" for at in range(40)]
    found = cut("".join(turns), 64, 256)
    assert len(found) < len(turns)
    assert all(passage.startswith("[Speaker") for passage in found)
    assert all(TOKENIZER.count(passage) <= 64 for passage in found)


def test_a_page_that_begins_inside_a_turn_gives_its_rest_first() -> None:
    found = cut("the end of what was said before.\n\n" + ASKED, 12, 256)
    assert found == ["the end of what was said before.\n\n", ASKED]


def test_brackets_inside_a_line_or_over_two_lines_are_no_header() -> None:
    assert turn_headers("He said [Ana | no time]\nand left.\n\n[this\nthat]\nmore") == []


def test_headers_are_known_by_where_they_stand() -> None:
    found = turn_headers(ASKED + THANKED)
    assert found == [(0, "Ana | Mon 2024-04-01"), (len(ASKED), "Ana | Mon 2024-04-01")]


@given(st.lists(st.sampled_from([ASKED, ANSWERED, THANKED, "\n\n", "[x]\n", "loose. "])))
def test_passages_of_turns_tile_the_text(parts: list[str]) -> None:
    text = "".join(parts)
    spans = turn_passages(text, 40, 90, TOKENIZER.starts(text), offset=7)
    assert "".join(text[start - 7 : end - 7] for start, end in spans) == text
    assert all(start < end for start, end in spans)
