"""Promise 3: a citation's quote equals the text at its place, or it is not shown."""

from __future__ import annotations

from hmars.query.agents import Draft, EvidenceBlock, Quote
from hmars.query.citations import verify
from tests.support import make_index, scope_of

INDEX = make_index([["The crane stands on pier 1.\n", "Pier 2 has twelve  lamps.\n"]])
SCOPE = scope_of(INDEX)
TEXT = "".join(page.text for page in INDEX.pages)


def block(number: int, page: int) -> EvidenceBlock:
    source = INDEX.pages[page - 1]
    return EvidenceBlock(
        number,
        "doc",
        "Doc",
        source.label,
        "",
        (page,),
        source.start,
        source.end,
        source.text,
        5,
        0.9,
    )


BLOCKS = (block(1, 1), block(2, 2))


def test_an_exact_quotation_is_kept_with_its_page_and_offsets() -> None:
    result = verify(
        Draft("On pier 1 [1].", False, (Quote(1, "crane stands on pier 1"),)), BLOCKS, SCOPE
    )
    (citation,) = result.citations
    assert (citation.page, citation.label, citation.number) == (1, "p. 1", 1)
    assert TEXT[citation.start : citation.end] == citation.quote == "crane stands on pier 1"
    assert result.text == "On pier 1 [1]."


def test_a_quotation_that_differs_in_spacing_and_case_becomes_the_exact_text() -> None:
    result = verify(Draft("12 [2].", False, (Quote(2, "pier 2 has twelve lamps"),)), BLOCKS, SCOPE)
    (citation,) = result.citations
    assert citation.quote == "Pier 2 has twelve  lamps"
    assert TEXT[citation.start : citation.end] == citation.quote


def test_a_quotation_given_for_the_wrong_block_moves_to_the_right_one() -> None:
    result = verify(Draft("Twelve [1].", False, (Quote(1, "Pier 2 has twelve"),)), BLOCKS, SCOPE)
    assert [citation.number for citation in result.citations] == [2]
    assert result.text == "Twelve [2]."


def test_an_invented_quotation_is_dropped_counted_and_its_mark_goes() -> None:
    draft = Draft("Red [1], on pier 1 [2].", False, (Quote(1, "The crane is red and tall"),))
    result = verify(draft, BLOCKS, SCOPE)
    assert result.citations == ()
    assert result.rejected == 1
    assert result.text == "Red, on pier 1."


def test_a_quotation_with_a_block_number_that_does_not_exist_is_still_looked_for() -> None:
    result = verify(
        Draft("Pier 1 [7].", False, (Quote(0, "The crane stands on pier 1."),)), BLOCKS, SCOPE
    )
    assert [citation.page for citation in result.citations] == [1]


def test_brackets_that_are_no_marks_stay() -> None:
    draft = Draft("See list[int] and [sic] and [1].", False, (Quote(1, "crane stands on"),))
    assert verify(draft, BLOCKS, SCOPE).text == "See list[int] and [sic] and [1]."


def test_the_same_quotation_given_twice_is_cited_once() -> None:
    quotes = (Quote(1, "crane stands on"), Quote(1, "crane stands on"))
    assert len(verify(Draft("[1]", False, quotes), BLOCKS, SCOPE).citations) == 1


def test_several_numbers_in_one_mark_keep_those_that_are_verified() -> None:
    draft = Draft("Both [1, 2].", False, (Quote(2, "twelve lamps"),))
    assert verify(draft, BLOCKS, SCOPE).text == "Both [2]."
