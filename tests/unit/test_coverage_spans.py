"""Recall, precision and intervals on examples worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmars.coverage import GoldUnit, coverage, mean_interval, paired_difference
from hmars.coverage.spans import length, overlap, union

TEXT = "aaaaaaaaaa bbbbbbbbbb cccccccccc "  # three words of ten, at 0, 11 and 22
A, B, C = (GoldUnit(((start, start + 10),)) for start in (0, 11, 22))


def test_whole_units_count_and_parts_are_told_apart() -> None:
    # a whole, b half, c not at all; 15 of 17 passed characters are gold (10 of a, 5 of b).
    found = coverage(TEXT, [A, B, C], [(0, 16), (32, 33)])
    assert found.units == 3
    assert found.recall == pytest.approx(1 / 3)
    assert found.nearly == pytest.approx(1 / 3)
    assert found.partial == pytest.approx(1 / 3)
    assert found.characters == pytest.approx((1 + 0.5 + 0) / 3)
    assert found.precision == pytest.approx(15 / 17)


def test_nine_tenths_is_nearly_all_but_not_all() -> None:
    found = coverage(TEXT, [A], [(0, 9)])
    assert (found.recall, found.nearly, found.partial) == (0.0, 1.0, 1.0)


def test_returning_everything_has_full_recall_and_poor_precision() -> None:
    found = coverage(TEXT, [A], [(0, len(TEXT))])
    assert (found.recall, found.partial) == (1.0, 0.0)
    assert found.precision == pytest.approx(10 / 33)


def test_returning_nothing_has_no_recall_and_no_precision() -> None:
    found = coverage(TEXT, [A, B], [])
    assert (found.recall, found.partial, found.characters, found.precision) == (0, 0, 0, 0)


def test_a_unit_split_over_touching_spans_is_whole() -> None:
    assert coverage(TEXT, [A], [(4, 10), (0, 4)]).recall == 1.0


def test_white_space_at_the_ends_of_gold_need_not_be_passed() -> None:
    assert coverage(TEXT, [GoldUnit(((10, 22),))], [(11, 21)]).recall == 1.0


def test_one_of_several_places_is_enough() -> None:
    assert coverage(TEXT, [GoldUnit(((0, 10), (22, 32)))], [(22, 32)]).recall == 1.0


def test_a_question_without_gold_has_no_recall() -> None:
    with pytest.raises(ValueError, match="no recall"):
        coverage(TEXT, [], [(0, 3)])


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


@given(SPANS, st.tuples(st.integers(0, 60), st.integers(0, 60)))
def test_union_and_overlap_agree_with_counting_characters(
    spans: list[tuple[int, int]], span: tuple[int, int]
) -> None:
    characters = {point for start, end in spans for point in range(start, end)}
    merged = union(spans)
    assert length(merged) == len(characters)
    assert overlap(span, merged) == len(characters & set(range(*span)))
    assert all(left[1] < right[0] for left, right in pairwise(merged))


def test_the_mean_of_equal_values_has_an_interval_of_no_width() -> None:
    interval = mean_interval([0.25] * 8)
    assert interval is not None
    assert (interval.mean, interval.low, interval.high, interval.count) == (0.25, 0.25, 0.25, 8)


def test_an_interval_of_two_values_reaches_from_one_to_the_other() -> None:
    # Of two values a quarter of the resamples are 0,0 and a quarter 1,1: both tails beyond 2.5 %.
    interval = mean_interval([0.0, 1.0])
    assert interval is not None
    assert (interval.mean, interval.low, interval.high) == (0.5, 0.0, 1.0)
    assert str(interval) == "0.500 [0.000, 1.000]"


def test_no_values_have_no_mean() -> None:
    assert mean_interval([]) is None


def test_differences_are_taken_on_shared_questions_only() -> None:
    first = {"a": 1.0, "b": 0.5, "only first": 0.0}
    second = {"a": 0.5, "b": 0.0, "only second": 1.0}
    interval = paired_difference(first, second)
    assert interval is not None
    assert (interval.mean, interval.low, interval.high, interval.count) == (0.5, 0.5, 0.5, 2)
