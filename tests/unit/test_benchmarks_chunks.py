"""Chunks tile the text and fill a budget exactly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.chunks import chunked, fill
from benchmarks.systems.graph import PieceTokenizer
from hmars.tokens import WordTokenizer

TOKENIZER = WordTokenizer()


@given(st.text(max_size=400), st.integers(1, 40))
def test_chunks_tile_the_text_and_keep_to_their_size(text: str, size: int) -> None:
    chunks = chunked(text, TOKENIZER, size)
    assert "".join(chunk.text for chunk in chunks) == text
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    assert sum(chunk.tokens for chunk in chunks) == TOKENIZER.count(text)


@given(st.text(max_size=200))
def test_numbered_pieces_give_the_text_back(text: str) -> None:
    pieces = PieceTokenizer(TOKENIZER)
    assert pieces.decode(pieces.encode(text)) == text


def test_a_chunk_ends_with_a_line_where_one_is_near() -> None:
    text = "one two three four five six seven\neight nine ten eleven twelve"
    first = chunked(text, TOKENIZER, 8)[0]
    assert first.text == "one two three four five six seven\n"


def test_filling_takes_the_best_first_and_cuts_the_one_that_does_not_fit() -> None:
    chunks = chunked("alpha beta gamma delta epsilon zeta eta theta", TOKENIZER, 4)
    chosen = fill(reversed(chunks), 6, TOKENIZER)
    assert [chunk.tokens for chunk in chosen] == [4, 2]
    assert chosen[1].text == chunks[0].text[: len(chosen[1].text)]
    assert fill(chunks, 0, TOKENIZER) == []
    assert fill(chunks, 1_000, TOKENIZER) == chunks
