"""Growing, forgetting and looking back: the same conversation whatever way it came in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmars.errors import InputError, NotFoundError
from hmars.indexing.turns import Turn, as_of, by_speaker, forget_turns, make_turns, merge

Row = dict[str, object]


def rows(count: int, first: int = 1) -> list[Row]:
    return [
        {"speaker": ("Mia", "Tom")[n % 2], "text": f"crate {n}", "time": f"2024-03-{n:02}T09:00Z"}
        for n in range(first, first + count)
    ]


def turns_of(items: Sequence[Mapping[str, object]]) -> tuple[Turn, ...]:
    return make_turns(items).turns


_REQUIRED: dict[str, st.SearchStrategy[object]] = {
    "speaker": st.sampled_from(["Mia", "Tom"]),
    "text": st.sampled_from(["ok", "no", "so"]),
}
_OPTIONAL: dict[str, st.SearchStrategy[object]] = {
    "time": st.sampled_from(
        ["2024-01-01T10:00Z", "2024-01-01T12:00+02:00", "2024-01-02", "junk", 1704103200]
    ),
    "id": st.sampled_from(["1", "2", "3"]),
    "session": st.sampled_from(["s1", "s2"]),
}
_rows = st.lists(st.fixed_dictionaries(_REQUIRED, optional=_OPTIONAL), max_size=12)


@settings(deadline=None)
@given(_rows, _rows)
def test_merging_twice_is_merging_once(before: list[Row], after: list[Row]) -> None:
    once = merge(merge((), turns_of(before)).turns, turns_of(after))
    twice = merge(once.turns, turns_of(after))
    assert len({turn.id for turn in once.turns}) == len(once.turns)
    assert twice.turns == once.turns
    assert not twice.added


@settings(deadline=None)
@given(_rows, st.lists(st.integers(0, 12), max_size=5), _rows)
def test_any_split_into_batches_gives_the_same_conversation(
    items: list[Row], cuts: list[int], before: list[Row]
) -> None:
    turns = turns_of(items)
    start = merge((), turns_of(before)).turns
    edges = [0, *sorted(min(cut, len(turns)) for cut in cuts), len(turns)]
    grown = start
    for low, high in pairwise(edges):
        grown = merge(grown, turns[low:high]).turns
    assert grown == merge(start, turns).turns


@settings(deadline=None)
@given(_rows)
def test_every_turn_is_accounted_for(items: list[Row]) -> None:
    result = merge((), turns_of(items))
    counted = len(result.added) + len(result.replaced) + result.duplicates
    assert counted == len(items)


def test_an_append_and_its_retry_keep_ids_and_order() -> None:
    first = merge((), turns_of(rows(20)))
    grown = merge(first.turns, turns_of(rows(5, first=21)))
    assert grown.turns[:20] == first.turns
    assert (len(grown.added), grown.unchanged) == (5, 20)
    retry = merge(grown.turns, turns_of(rows(5, first=21)))
    assert retry.turns == grown.turns
    assert (retry.added, retry.duplicates, retry.unchanged) == ((), 5, 25)


def test_older_turns_that_arrive_later_take_their_place_in_time() -> None:
    now = merge((), turns_of(rows(2, first=10))).turns
    late = merge(now, turns_of(rows(1, first=3)))
    assert [turn.text for turn in late.turns] == ["crate 3", "crate 10", "crate 11"]
    assert late.out_of_order == late.added
    assert late.unchanged == 0


def test_the_same_words_at_another_time_are_another_turn() -> None:
    result = merge(
        (),
        turns_of(
            [
                {"speaker": "Mia", "text": "ok", "time": "2024-03-01T09:00Z"},
                {"speaker": "Mia", "text": "ok", "time": "2024-03-01T09:05Z"},
                {"speaker": "Mia", "text": "ok", "time": "2024-03-01T09:05Z"},
                {"speaker": "Tom", "text": "ok", "time": "2024-03-01T09:05Z"},
            ]
        ),
    )
    assert len(result.turns) == 4


def test_repeated_words_without_time_or_id_are_counted_as_ambiguous() -> None:
    once = merge((), turns_of([{"speaker": "Mia", "text": "ok"}]))
    again = merge(once.turns, turns_of([{"speaker": "Mia", "text": "ok"}]))
    assert (len(again.turns), again.duplicates, again.ambiguous) == (1, 1, 1)


def test_two_spellings_of_one_time_and_of_one_accent_are_one_turn() -> None:
    composed = {"speaker": "Zo\u00eb", "text": "caf\u00e9", "time": "2024-03-01T09:00:00Z"}
    decomposed = {"speaker": "Zoe\u0308", "text": "cafe\u0301", "time": "2024-03-01T10:00+01:00"}
    result = merge(merge((), turns_of([composed])).turns, turns_of([decomposed]))
    assert result.duplicates == 1
    assert result.turns[0].speaker == "Zo\u00eb"


def test_an_edited_turn_is_replaced_at_its_place() -> None:
    one: Row = {"id": "m1", "speaker": "Mia", "text": "at 5", "time": "2024-03-01T09:00Z"}
    two: Row = {"id": "m2", "speaker": "Tom", "text": "fine", "time": "2024-03-01T09:01Z"}
    result = merge(merge((), turns_of([one, two])).turns, turns_of([one | {"text": "at 6"}]))
    assert [turn.text for turn in result.turns] == ["at 6", "fine"]
    assert result.replaced == ("m1",)


def test_numbers_that_start_anew_in_each_file_overwrite_nothing() -> None:
    monday = merge((), turns_of([{"id": 1, "speaker": "Mia", "text": "mud"}]))
    tuesday = turns_of([{"id": 1, "speaker": "Mia", "text": "sun"}])
    result = merge(monday.turns, tuesday)
    assert [turn.text for turn in result.turns] == ["mud", "sun"]
    assert len(result.renamed) == 1
    assert merge(result.turns, tuesday).turns == result.turns


def test_another_zone_for_known_turns_is_counted_and_changes_nothing() -> None:
    item: Row = {"speaker": "Mia", "text": "hi", "time": "2024-03-01 09:00"}
    first = merge((), make_turns([item], zone="Asia/Tokyo").turns)
    second = merge(first.turns, make_turns([item], zone="Europe/Lisbon").turns)
    assert second.turns == first.turns
    assert second.time_differs == 1


def test_forgetting_leaves_the_ids_and_order_of_the_others() -> None:
    turns = merge((), turns_of(rows(5))).turns
    left = forget_turns(turns, ids=[turns[1].id])
    assert left == (turns[0], *turns[2:])
    again = merge(left, turns_of(rows(5)), forgotten={turns[1].id})
    assert (again.turns, again.forgotten) == (left, 1)


def test_forgetting_before_a_time_takes_undated_neighbours_along() -> None:
    items = [{"speaker": "Mia", "text": "prologue"}, *rows(2), {"speaker": "Mia", "text": "coda"}]
    turns = merge((), turns_of(items)).turns
    left = forget_turns(turns, before=datetime(2024, 3, 2, tzinfo=UTC))
    assert [turn.text for turn in left] == ["crate 2", "coda"]


def test_forgetting_an_unknown_turn_is_an_error() -> None:
    with pytest.raises(NotFoundError, match="no turn 'nope'"):
        forget_turns(turns_of(rows(2)), ids=["nope"])


def test_looking_back_gives_what_had_been_said_by_then() -> None:
    turns = merge((), turns_of(rows(5))).turns
    assert as_of(turns, datetime(2024, 3, 3, 9, tzinfo=UTC)) == turns[:3]
    with pytest.raises(InputError, match="no offset"):
        as_of(turns, datetime(2024, 3, 3))  # noqa: DTZ001


def test_speakers_with_one_first_name_stay_apart() -> None:
    names = ["Ada Lund", "Ada Mohr", "ADA  LUND", "Ada"]
    turns = turns_of([{"speaker": name, "text": f"I am {name}"} for name in names])
    assert [turn.text for turn in by_speaker(turns, "ada lund")] == [
        "I am Ada Lund",
        "I am ADA  LUND",
    ]
    assert len(by_speaker(turns, "Ada Mohr")) == 1
