"""Times and zones of turns: mixed, invalid and missing ones."""

from __future__ import annotations

import json
import zoneinfo
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmars.errors import ConfigError, InputError
from hmars.indexing.turns import make_turns, merge, read_moment, read_turns, render
from hmars.indexing.turns.times import find_zone, read_time

MIXED = [
    ("tokyo", "2025-03-02T07:30:00+09:00"),
    ("late", "2025-03-03"),
    ("denver", "2025-03-01T22:15:00-07:00"),
    ("plain", "2025-03-02T10:00:00"),
    ("zulu", "2025-03-02T06:00:00Z"),
    ("seconds", 1740913200),
    ("millis", 1740916800000),
]


def test_times_of_every_kind_are_ordered_by_instant() -> None:
    lines = [json.dumps({"speaker": "Ida", "text": n, "time": t}) for n, t in MIXED]
    file = read_turns("\n".join(lines).encode(), name="chat", zone="Europe/Lisbon")
    turns = merge((), file.turns).turns
    assert [turn.text for turn in turns] == [
        "tokyo", "denver", "zulu", "plain", "seconds", "millis", "late",
    ]  # fmt: skip
    assert [turn.time.original for turn in turns][:2] == [MIXED[0][1], MIXED[2][1]]
    assert all((turn.time.iso or "")[-6] in "+-" for turn in turns)


def test_a_turn_shows_the_day_of_its_speaker() -> None:
    (turn,) = make_turns(
        [{"speaker": "Ana", "text": "Happy new year!", "time": "2023-12-31T23:50:00-07:00"}]
    ).turns
    assert "Sun 2023-12-31 23:50-07:00" in render([turn], conversation="c").source.text
    assert turn.time.at == datetime(2024, 1, 1, 6, 50, tzinfo=UTC)


def test_a_naive_time_gets_the_declared_zone_and_says_so() -> None:
    (turn,) = make_turns(
        [{"speaker": "Ana", "text": "hot", "time": "2024-07-01 12:00"}], zone="Europe/Lisbon"
    ).turns
    assert turn.time.naive
    assert turn.time.iso == "2024-07-01T12:00:00+01:00"
    assert "(Europe/Lisbon assumed)" in render([turn], conversation="c").source.text


def test_without_a_declared_zone_a_naive_time_is_utc_and_warned_of() -> None:
    file = make_turns([{"speaker": "Ana", "text": "hi", "time": "2024-07-01 12:00"}], name="f")
    assert file.turns[0].time.iso == "2024-07-01T12:00:00+00:00"
    assert file.warnings == (
        "f: turn 1 with a time without offset, read as UTC (as no zone is declared).",
    )


def test_invalid_and_missing_times_stay_next_to_the_turn_before_them() -> None:
    file = make_turns(
        [
            {"speaker": "A", "text": "first", "time": "2024-01-01T10:00Z"},
            {"speaker": "A", "text": "broken", "time": "32/13/2024"},
            {"speaker": "A", "text": "without"},
            {"speaker": "A", "text": "last", "time": "2024-01-01T12:00Z"},
            {"speaker": "A", "text": "between", "time": "2024-01-01T11:00Z"},
        ]
    )
    turns = merge((), file.turns).turns
    assert [turn.text for turn in turns] == ["first", "broken", "without", "between", "last"]
    assert [turn.time.invalid for turn in turns] == [False, True, False, False, False]
    assert [turn.time.missing for turn in turns] == [False, False, True, False, False]
    assert turns[1].time.original == "32/13/2024"
    assert len(file.warnings) == 2


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("2:05 pm on 9 June, 2023", "2023-06-09T14:05:00+00:00"),
        ("2023/06/09 (Fri) 14:05", "2023-06-09T14:05:00+00:00"),
        ("Fri, 9 Jun 2023 14:05:00 +0200", "2023-06-09T14:05:00+02:00"),
        ("2023-06-09T14:05:00.1234567+00:00", "2023-06-09T14:05:00.123456+00:00"),
        ("1686319500.25", "2023-06-09T14:05:00.250000+00:00"),
        ("2023年6月9日 周五 14:05", "2023-06-09T14:05:00+00:00"),
        ("2023-06-09 (Friday)", "2023-06-09T00:00:00+00:00"),
        ("20230609_14:05", "2023-06-09T14:05:00+00:00"),
        ("9 June 2023", "2023-06-09T00:00:00+00:00"),
        ("June 9, 2023", "2023-06-09T00:00:00+00:00"),
        ("2023-06-09 14:05 UTC", "2023-06-09T14:05:00+00:00"),
        ("09-Jun-23 02:05 PM", "2023-06-09T14:05:00+00:00"),
    ],
)
def test_usual_spellings_are_read(written: str, iso: str) -> None:
    assert read_time(written, find_zone(None)).iso == iso


@pytest.mark.parametrize(
    "written",
    ["03/04/2024", "yesterday", 12, True, [1], float("nan"), "0001-01-01T00:00+14:00", {}],
)
def test_what_is_no_certain_time_is_invalid_and_kept_as_written(written: object) -> None:
    time = read_time(written, find_zone(None))
    assert time.invalid
    assert time.original == str(written)


@settings(deadline=None)
@given(st.one_of(st.text(), st.integers(), st.floats(), st.datetimes(), st.dates()))
def test_no_time_is_ever_an_error(raw: object) -> None:
    time = read_time(raw, find_zone("Europe/Lisbon"))
    assert time.at is None or time.at.utcoffset() is not None


def test_an_unknown_zone_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match="no time zone 'Mars/Base'"):
        find_zone("Mars/Base")
    with pytest.raises(ConfigError):
        find_zone("../etc/passwd")


def test_absent_zone_data_is_named_as_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    zoneinfo.ZoneInfo.clear_cache()
    monkeypatch.setattr(zoneinfo, "available_timezones", lambda: set[str]())
    monkeypatch.setattr(zoneinfo, "ZoneInfo", _absent)
    with pytest.raises(ConfigError, match="pip install tzdata"):
        find_zone("Europe/Lisbon")
    assert find_zone("+05:30").info.utcoffset(None) == timedelta(hours=5, minutes=30)


def _absent(key: str) -> None:
    raise zoneinfo.ZoneInfoNotFoundError(key)


def test_a_typed_day_can_mean_its_end() -> None:
    assert read_moment("2024-02-15") == datetime(2024, 2, 15, tzinfo=UTC)
    end = read_moment("2024-02-15", "Europe/Lisbon", end_of_day=True)
    assert end == datetime(2024, 2, 15, 23, 59, 59, 999999, tzinfo=UTC)
    with pytest.raises(InputError, match="'soon' is not a time"):
        read_moment("soon")


def test_stored_turns_read_back_equal() -> None:
    rows = [{"speaker": "Ida", "text": n, "time": t} for n, t in MIXED]
    for turn in merge((), make_turns(rows, zone="Asia/Kolkata").turns).turns:
        assert type(turn).model_validate_json(turn.model_dump_json()) == turn
