from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmars.grounding import Grounder, entity_key, find_quote, mentions


def shown(text: str, quote: str) -> str | None:
    span = find_quote(text, quote)
    return None if span is None else text[slice(*span)]


@pytest.mark.parametrize(
    ("text", "quote", "expected"),
    [
        ("Pier 2 has twelve lamps.", "twelve lamps", "twelve lamps"),
        ("Pier 2 has\n  twelve lamps.", "pier 2 has twelve LAMPS", "Pier 2 has\n  twelve lamps"),
        ("“No,” she said – twice.", '"No," she said - twice.', "“No,” she said – twice."),
        ("the light-\nhouse keeper", "lighthouse keeper", "light-\nhouse keeper"),
        ("a well-\nknown keeper", "a well-known keeper", "a well-\nknown keeper"),
        (
            "zero\u200bwidth and soft\u00adhyphen",
            "zerowidth and softhyphen",
            "zero\u200bwidth and soft\u00adhyphen",
        ),
        ("Die STRASSE ist lang", "die Straße ist lang", "Die STRASSE ist lang"),
        ("x Café au lait", "Cafe\u0301 au lait", "Café au lait"),
        ("x Cafe\u0301, then", "au Café", None),
        ("x Cafe\u0301, then", "x Café", "x Cafe\u0301"),
        ("İİİ the crane is red", "The Crane Is Red", "the crane is red"),
        ("a ﬁne day", "A fine day", "a ﬁne day"),
        ("The keeper of the lamp.", '"the keeper of the lamp"', "The keeper of the lamp"),
        ("Pier 2 has lamps and more", "Pier 2 has lamps.", "Pier 2 has lamps"),
    ],
)
def test_a_quotation_is_found_whatever_its_dress_and_shown_as_it_stands(
    text: str, quote: str, expected: str | None
) -> None:
    assert shown(text, quote) == expected


@pytest.mark.parametrize("quote", ["", " ", "\n", "“”", "a", "...", "…", "- -"])
def test_a_quotation_without_substance_is_found_nowhere(quote: str) -> None:
    assert find_quote("a b ... “” - - c", quote) is None


def test_words_are_never_dropped_to_make_a_quotation_fit() -> None:
    text = "The crane was bought second hand in 1998 and painted."
    assert find_quote(text, "The crane was bought new in 1998") is None
    assert find_quote(text, "The crane was painted") is None


@pytest.mark.parametrize("dots", ["...", " … ", " [...] ", " (…) "])
def test_an_ellipsis_is_anchored_to_the_longest_part_that_is_there(dots: str) -> None:
    text = "The keeper lights the lamp at dusk. Nobody else may. At dawn the lamp goes out again."
    assert shown(text, f"The keeper lights the lamp{dots}at dawn the lamp goes out again") == (
        "At dawn the lamp goes out again"
    )
    assert shown(text, f"The keeper paints the lamp{dots}nobody saw it") is None


def test_a_thousand_quotations_share_one_folded_text() -> None:
    text = "".join(f"Line {number} says that lamp {number * 7} is lit.\n" for number in range(1000))
    grounder = Grounder(text)
    for number in range(1000):
        span = grounder.find(f"LINE {number} says  that lamp {number * 7} is lit")
        assert span is not None
        assert text[slice(*span)] == f"Line {number} says that lamp {number * 7} is lit"


LETTERS = st.one_of(
    st.characters(categories=("L", "Nd")).filter(
        # A spacing accent decomposes into a space and a mark, which is no longer the same sign.
        lambda sign: " " not in unicodedata.normalize("NFKC", sign)
    ),
    st.sampled_from(list("abcxyzßİıfiéÅ漢字हनſ")),
)
WORDS = st.text(LETTERS, min_size=4, max_size=8)
JOINTS = st.sampled_from([" ", "  ", "\n", "-", " – ", "’", ", “", "” ", ". "])
AROUND = st.text(max_size=12)


@st.composite
def quotations(draw: st.DrawFn) -> tuple[str, str]:
    """A text and a quotation of it."""
    quote = draw(WORDS)
    for _ in range(draw(st.integers(0, 4))):
        quote += draw(JOINTS) + draw(WORDS)
    return draw(AROUND) + quote + draw(AROUND), quote


@given(quotations())
def test_any_slice_is_found_exactly(case: tuple[str, str]) -> None:
    text, quote = case
    assert shown(text, quote) == quote


@given(quotations(), st.sampled_from(["upper", "spaces", "nfd", "nfkc", "dashes", "joined"]))
def test_any_slice_in_another_dress_is_found_and_maps_back(
    case: tuple[str, str], dress: str
) -> None:
    text, quote = case
    changed = {
        "upper": quote.upper(),
        "spaces": quote.replace(" ", "  \n "),
        "nfd": unicodedata.normalize("NFD", quote),
        "nfkc": unicodedata.normalize("NFKC", quote),
        "dashes": quote.replace("–", "-").replace("’", "'").replace("“", '"'),
        "joined": "\u200b".join(quote),
    }[dress]
    span = find_quote(text, changed)
    assert span is not None
    assert 0 <= span[0] < span[1] <= len(text)
    assert alike(text[slice(*span)]) == alike(quote)


def alike(text: str) -> str:
    """Letters and digits only, folded: what must not change."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text.upper()).casefold())
    return "".join(sign for sign in folded if sign.isalnum())


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("the north store is shut", "North Store", True),
        ("the north\n store", "north store", True),
        ("Annual report", "Ann", False),
        ("met ZOE\u0308 Brandt", "Zoë Brandt", True),
        ("met Zoë Brandt", "Zoe Brandt", False),
        ("pay $2,500 now", "$2,500", True),
        ("pay $2,500 now", "$2,50", False),
        ("他住在北京市", "北京", True),
        ("anything", "", False),
        ("anything", "Acme Orbital", False),
    ],
)
def test_a_name_is_mentioned_as_whole_words_only(text: str, name: str, expected: bool) -> None:
    assert mentions(text, name) is expected


def test_the_spelling_of_the_text_is_given_back_even_without_the_accent() -> None:
    grounder = Grounder("We met Zoë  BRANDT at the pier.")
    assert grounder.spelling("zoe brandt") == "Zoë  BRANDT"
    assert grounder.spelling("Zoe Brand") is None


def test_variants_of_a_name_share_a_key_and_other_names_do_not() -> None:
    assert entity_key("System Admin") == entity_key("system-admin") == entity_key("SystemAdmin")
    assert entity_key("Zoë") == entity_key("ZOE\u0308") != entity_key("Zoe")
    assert entity_key("Straße") == entity_key("STRASSE")
    assert entity_key("İstanbul")
    assert entity_key("Zoe Brand") != entity_key("Zoe Brandt")


def test_a_letter_that_falls_into_an_apostrophe_and_a_letter_is_found_in_capitals() -> None:
    text = "Daar is \u0149 skip."
    assert find_quote(text, text.upper()) is not None
