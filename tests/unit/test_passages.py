"""Passages of pages that a model judged as a whole: its confidence first, then the words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest

from hmars.model import DocumentIndex
from hmars.query.agents import RegionSelection, Scope, SelectedPage
from hmars.query.evidence import assemble
from hmars.query.passages import LexicalDivider, shifted
from hmars.query.ranking import LexicalIndex
from tests.unit.test_evidence import TOKENIZER, index_of

FILLER = "The road runs on along the hills and nothing is to be seen there. " * 60
KEEPER = "The keeper of the lighthouse is Orla Venn. "
TEXT = FILLER + FILLER[:700] + KEEPER + FILLER[:700] + FILLER
QUESTION = "Who is the keeper of the lighthouse?"


@pytest.fixture
def index() -> DocumentIndex:
    return index_of(TEXT, page=700, snap=False)


def evidence_of(
    index: DocumentIndex,
    confidences: Mapping[int, float],
    budget: int,
    lexical: Callable[[], LexicalIndex] | None = None,
) -> str:
    """What is passed on of pages that a model gave these confidences and no passages."""
    scope = Scope((index,))
    selections = {
        (index.document.id, region.index): RegionSelection(
            tuple(
                SelectedPage(page, confidences[page.index])
                for page in region.pages
                if page.index in confidences
            )
        )
        for region in index.regions
    }
    divider = LexicalDivider(lexical or (lambda: LexicalIndex(scope, TOKENIZER)))
    evidence = assemble(scope, selections, budget, TOKENIZER, partial(divider, QUESTION))
    return "".join(block.text for block in evidence.blocks)


def page_of_the_keeper(index: DocumentIndex) -> int:
    return next(page.index for page in index.pages if KEEPER in page.text)


def test_a_page_that_does_not_fit_gives_the_passage_that_answers(
    index: DocumentIndex,
) -> None:
    number = page_of_the_keeper(index)
    assert KEEPER not in index.pages[number - 1].text[: len(FILLER) // 6]
    assert KEEPER in evidence_of(index, {number: 0.6}, 270)


def test_words_decide_between_pages_that_the_model_can_hardly_tell_apart(
    index: DocumentIndex,
) -> None:
    number = page_of_the_keeper(index)
    other = 1 if number != 1 else 2
    assert KEEPER in evidence_of(index, {number: 0.58, other: 0.62}, 270)


def test_words_do_not_stand_against_a_model_that_is_sure(index: DocumentIndex) -> None:
    number = page_of_the_keeper(index)
    other = 1 if number != 1 else 2
    assert KEEPER not in evidence_of(index, {number: 0.2, other: 0.98}, 270)


def test_selected_pages_that_fit_stay_whole_and_no_passages_are_ranked(
    index: DocumentIndex,
) -> None:
    def never() -> LexicalIndex:
        raise AssertionError("an index of a large scope takes a while")

    page = index.pages[page_of_the_keeper(index) - 1]
    assert evidence_of(index, {page.index: 0.3}, page.tokens, never).startswith(page.text)


@pytest.mark.parametrize("confidence", [0.0, 1.0])
def test_a_page_that_a_model_is_certain_of_gives_the_passage_that_answers_first(
    index: DocumentIndex, confidence: float
) -> None:
    assert KEEPER in evidence_of(index, {page_of_the_keeper(index): confidence}, 270)
    assert shifted(confidence, -1.0) < shifted(confidence, 0.0)


def test_a_confidence_moves_by_log_odds() -> None:
    assert shifted(0.5, 0.0) == 0.5
    assert shifted(0.5, -1.0) == pytest.approx(0.2689, abs=1e-4)
    assert shifted(0.9, -1.0) > shifted(0.8, -1.0)
