"""Time zones and times as files write them.

Read are ISO 8601, seconds to nanoseconds since 1970, e-mail dates, and forms that begin with the
year or name the month. "03/04/2024" is not guessed: it is invalid, and kept as written.
"""

from __future__ import annotations

import math
import re
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime

from hmars.errors import ConfigError, InputError
from hmars.indexing.turns.turn import TurnTime

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_YEAR_FIRST = re.compile(r"(\d{4})[/.年-](\d{1,2})[/.月-](\d{1,2})[.日]?")
_WEEKDAY = re.compile(
    r"\s*\((?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\)|^[a-z]{3,9}day,?\s|\s*(?:周|星期).", re.I
)
_SPOKEN = (
    "%I:%M %p on %d %B, %Y",
    "%I:%M %p on %d %B %Y",
    "%d %B %Y %H:%M:%S",
    "%d %B %Y %H:%M",
    "%d %B %Y %I:%M %p",
    "%d %b %Y %H:%M:%S",
    "%d %b %Y %H:%M",
    "%d %b %Y %I:%M %p",
    "%d-%b-%y %I:%M %p",
    "%d-%b-%Y %I:%M %p",
    "%d-%b-%Y %H:%M",
    "%B %d %Y %H:%M",
    "%B %d %Y %I:%M %p",
    "%b %d %Y %H:%M",
    "%b %d %Y %H:%M:%S",
    "%b %d %Y %I:%M %p",
    "%Y-%m-%d %I:%M %p",
    "%Y-%m-%d %I:%M:%S %p",
)
_SPOKEN_DAYS = ("%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y", "%d-%b-%Y")
_FIRST_EPOCH_S = 10**8
"""Smaller numbers (before March 1973) are turn numbers or offsets, not seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A validated time zone; `declared` is false where UTC stands in for none."""

    name: str
    info: tzinfo
    declared: bool = True


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time that a reader understood from its format; `wall` may be naive."""

    original: str
    wall: datetime | None = None
    offset_s: float | None = None


def find_zone(name: str | None) -> Zone:
    """The zone of a conversation: an IANA name ("Europe/Lisbon") or an offset ("+01:00").

    Raises:
        ConfigError: no such zone, or this machine has no time zone data.
    """
    if name is None:
        return Zone("UTC", UTC, declared=False)
    if name.upper() in {"UTC", "Z"}:
        return Zone("UTC", UTC)
    if match := _OFFSET.fullmatch(name.strip()):
        sign, hours, minutes = match.groups()
        shift = timedelta(hours=int(hours), minutes=int(minutes))
        if shift < timedelta(hours=24):
            return Zone(name, timezone(-shift if sign == "-" else shift))
    try:
        return Zone(name, zoneinfo.ZoneInfo(name))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        if not zoneinfo.available_timezones():
            raise ConfigError(
                f"The time zone '{name}' cannot be looked up, as this machine has no time zone "
                "data: pip install tzdata, or give an offset such as +01:00."
            ) from None
        raise ConfigError(
            f"There is no time zone '{name}': use a name such as Europe/Lisbon or an offset "
            "such as +01:00."
        ) from None


def read_time(raw: object, zone: Zone) -> TurnTime:
    """Read a time of any kind; what cannot be read stays as written, flagged, never an error."""
    if raw is None or raw == "":
        return TurnTime()
    original = _original(raw)
    if isinstance(raw, Stamp) and raw.offset_s is not None:
        return TurnTime(original=original, offset_s=raw.offset_s)
    try:
        wall, day_only = _wall(raw, zone)
        return _placed(original, wall, zone, day_only=day_only)
    except (ValueError, OverflowError, OSError):
        return TurnTime(original=original)


def read_moment(text: str, zone: str | None = None, *, end_of_day: bool = False) -> datetime:
    """An instant that a person typed (`--as-of`, `--before`).

    Args:
        zone: taken for a time without an offset; None is UTC.
        end_of_day: a day without an hour means its last microsecond, not its first.

    Raises:
        InputError: the text is no time.
        ConfigError: no such zone.
    """
    found = find_zone(zone)
    moment = read_time(text.strip(), found)
    if moment.at is None:
        raise InputError(f"'{text}' is not a time: write 2024-04-02 or 2024-04-02T10:15+01:00.")
    if end_of_day and moment.day_only:
        last = datetime.combine(moment.at.date(), time.max, tzinfo=found.info)
        return _with_fixed_offset(last)
    return moment.at


def _original(raw: object) -> str:
    if isinstance(raw, Stamp):
        return clean(raw.original)
    if isinstance(raw, (datetime, date)):
        return raw.isoformat()
    return clean(str(raw))


def clean(text: str) -> str:
    """Join split surrogate pairs and replace lone ones: text that UTF-8 can hold."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _wall(raw: object, zone: Zone) -> tuple[datetime, bool]:
    """The date and time as written (aware where the source is) and whether it is a day only."""
    if isinstance(raw, Stamp):
        if raw.wall is None:
            raise ValueError
        return raw.wall, False
    if isinstance(raw, datetime):
        return raw, False
    if isinstance(raw, date):
        return datetime.combine(raw, time.min), True
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise ValueError
    if isinstance(raw, (int, float)):
        return _epoch(float(raw), zone), False
    return _from_text(clean(raw).strip(), zone)


def _from_text(text: str, zone: Zone) -> tuple[datetime, bool]:
    if _NUMBER.fullmatch(text):
        digits = len(text)
        if digits == 8 and text.isdigit():
            return datetime.fromisoformat(text), True
        if digits == 14 and text.startswith(("19", "20")):
            return datetime.fromisoformat(f"{text[:8]}T{text[8:]}"), False
        return _epoch(float(text), zone), False
    text = _WEEKDAY.sub("", text).strip()
    text = _YEAR_FIRST.sub(
        lambda match: f"{match[1]}-{int(match[2]):02}-{int(match[3]):02}", text, count=1
    )
    text = re.sub(r"\s*(?:UTC|GMT)$", "+00:00", text)
    try:
        return datetime.fromisoformat(text), len(text) == 10
    except ValueError:
        return _spoken(text)


def _spoken(text: str) -> tuple[datetime, bool]:
    plain = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b|,(?! \d{4}$)|\bat\b", "", text)
    plain = " ".join(plain.split())
    for form in (*_SPOKEN, *_SPOKEN_DAYS):
        for candidate in (plain, plain.replace(",", "")):
            try:
                wall = datetime.strptime(candidate, form)  # noqa: DTZ007 (naive as written)
            except ValueError:
                continue
            return wall, form in _SPOKEN_DAYS
    return parsedate_to_datetime(text), False


def _epoch(value: float, zone: Zone) -> datetime:
    size = abs(value)
    if not math.isfinite(value) or size < _FIRST_EPOCH_S:
        raise ValueError
    for limit, divisor in ((1e11, 1), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9)):
        if size < limit:
            return datetime.fromtimestamp(value / divisor, zone.info)
    raise ValueError


def _placed(original: str, wall: datetime, zone: Zone, *, day_only: bool) -> TurnTime:
    assumed = None
    if wall.utcoffset() is None:
        wall, assumed = wall.replace(tzinfo=zone.info), zone.name
    at = _with_fixed_offset(wall)
    at.astimezone(UTC)  # a time at the edge of the calendar has no instant: OverflowError
    return TurnTime(original=original, at=at, assumed_zone=assumed, day_only=day_only)


def _with_fixed_offset(moment: datetime) -> datetime:
    """The same wall clock with a plain offset, so that a stored time reads back equal."""
    shift = moment.utcoffset() or timedelta()
    return moment.replace(tzinfo=timezone(shift) if shift else UTC, fold=0)
