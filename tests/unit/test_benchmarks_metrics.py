"""Answer measures and prices on examples worked out by hand."""

from __future__ import annotations

import pytest

from benchmarks import metrics
from hmars.model import Usage


@pytest.mark.parametrize(
    ("prediction", "answers", "exact", "f1"),
    [
        ("The Eiffel Tower!", ["eiffel tower"], 1.0, 1.0),
        ("Tower", ["the Eiffel Tower"], 0.0, 2 / 3),  # precision 1, recall 1/2
        ("in Paris, France", ["Paris"], 0.0, 0.5),  # precision 1/3, recall 1
        ("London", ["Paris", "London"], 1.0, 1.0),
        ("yes it is", ["yes"], 0.0, 0.0),
        ("", ["Paris"], 0.0, 0.0),
        ("在北京", ["北京"], 0.0, 0.8),  # 2 of 3 and 2 of 2 characters
    ],
)
def test_exact_match_and_f1(prediction: str, answers: list[str], exact: float, f1: float) -> None:
    assert metrics.exact_match(prediction, answers) == exact
    assert metrics.f1(prediction, answers) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("prediction", "answers", "closed", "paper"),
    [
        ("No answer found", ["no"], 0.0, 1.0),  # the hole
        ("It is unknown.", ["no"], 0.0, 1.0),  # "no" inside "unknown"
        ("No, he died in 1970.", ["no"], 1.0, 1.0),
        ("Yes; there is no doubt", ["no"], 0.0, 1.0),
        ("It was Everett Greene", ["Everett Greene"], 1.0, 1.0),
        ("Greene", ["Everett Greene"], 1.0, 1.0),
        ("art", ["Bart Simpson"], 0.0, 1.0),  # part of a word
        ("", ["Paris"], 0.0, 1.0),
        ("The answer is not in the document.", ["Paris"], 0.0, 0.0),
        ("Insufficient information", ["insufficient information"], 1.0, 1.0),
        ("Rome", ["Paris"], 0.0, 0.0),
    ],
)
def test_sub_em_with_its_hole_closed_and_as_published(
    prediction: str, answers: list[str], closed: float, paper: float
) -> None:
    assert metrics.sub_em(prediction, answers) == closed
    assert metrics.sub_em_paper(prediction, answers) == paper


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("The correct answer is (C).", "C"),
        ("B", "B"),
        ("**D**", "D"),
        ("B. Because the first one", "B"),
        ("I think so.\nAnswer: A", "A"),
        ("The answer is a complicated matter.", None),
        ("", None),
    ],
)
def test_the_letter_a_reply_chooses(reply: str, letter: str | None) -> None:
    assert metrics.letter(reply) == letter
    assert metrics.letter_accuracy(reply, "c") == float(letter == "C")


def test_the_share_of_answers_named_counts_each_answer_once() -> None:
    assert metrics.named_share("7 and 12", ["12", "7", "99", "1"]) == 0.5
    assert metrics.named_share("", ["1"]) == 0.0


def test_flops_are_twice_parameters_times_tokens() -> None:
    usage = {
        "answer": Usage(prompt_tokens=90, completion_tokens=10),
        "select": Usage(prompt_tokens=1_000),
    }
    assert metrics.flops(usage, {"answer": 5.0, "select": 2.0}) == 2 * 5 * 100 + 2 * 2 * 1_000


def test_flops_are_not_known_where_a_model_that_spent_tokens_has_no_known_size() -> None:
    assert metrics.flops({"answer": Usage(prompt_tokens=1)}, {}) is None
    assert metrics.flops({"answer": Usage()}, {}) == 0.0


def test_query_flops_follow_equation_eleven() -> None:
    # 200,000 tokens: 13 regions of 16,384, 2 mid-agents of 10.
    assert metrics.hierarchy(200_000, 16_384, 10) == (13, 2)
    spent = metrics.query_flops(
        200_000,
        16_384,
        10,
        mid=8e9,
        select=8e9,
        base=2e12,
        broadcast_tokens=2_000,
        select_tokens=17_000,
        answer_tokens=13_000,
    )
    assert spent == 2 * 8e9 * 2 * 2_000 + 2 * 8e9 * 13 * 17_000 + 2 * 2e12 * 13_000


def test_index_flops_follow_equation_ten() -> None:
    spent = metrics.index_flops(40_000, 16_384, 10, 0.6e9, 8e9, 17_000, 3_000)
    assert spent == 2 * 0.6e9 * 3 * 17_000 + 2 * 8e9 * 1 * 3_000


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("Qwen/Qwen3-8B", 8e9),
        ("Qwen3-0.6B", 0.6e9),
        ("SmolLM2-135M-Instruct", 135e6),
        ("gpt-5.1", None),
        ("special", 7.0),
    ],
)
def test_parameters_come_from_the_name_or_from_what_is_told(model: str, size: float | None) -> None:
    assert metrics.parameters(model, {"special": 7.0}) == size
