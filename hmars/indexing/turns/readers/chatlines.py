"""WhatsApp's text export, and Signal's, which has the same shape: "DATE, TIME - NAME: TEXT".

The phone's locale decides how the date is written. Order of day, month and year is worked out
from the whole file: the order that fits most dates, and of those that fit equally the one in which
time runs backwards least. If two are still equal, the more usual is taken and a warning says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Literal

from hmars.indexing.turns.drafts import Draft, Notes
from hmars.indexing.turns.times import Stamp

DateOrder = Literal["dmy", "mdy", "ymd"]

_MARKS = "\u200e\u200f\u202a\u202c\ufeff"
_HEAD = re.compile(
    rf"^[{_MARKS}]*\[?"
    r"(?P<stamp>(?P<date>\d{1,4}[./-]\s?\d{1,2}[./-]\s?\d{1,4})\.?,?\s(?:klo\s|um\s|kl\.?\s|à\s)?"
    r"(?P<before>上午|下午|오전|오후|午前|午後)?\s?"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?"
    r"(?:\s?(?P<after>[aApP]\.?\s?[mM]\.?))?)"
    r"(?:\]\s?|\s[-–]\s)(?P<rest>.*)$"
)
_SPEAKER = re.compile(r'^(?P<name>[^:"“\n]{1,80}):(?!\d|//) ?(?P<text>.*)$', re.DOTALL)


@dataclass(slots=True)
class _Entry:
    line: int
    stamp: str
    date: tuple[int, int, int]
    clock: tuple[int, int, int]
    lines: list[str] = field(default_factory=list[str])


def looks_like_chat(text: str) -> bool:
    lines = [line for line in text[:20_000].split("\n") if line.strip()][:40]
    return any(_HEAD.match(line) for line in lines[:5]) and bool(lines)


def read_chat(text: str, notes: Notes, order: DateOrder | None = None) -> list[Draft]:
    """Every message with the lines that continue it; lines without a sender are `system`."""
    entries = _entries(text, notes)
    chosen = order or _date_order(entries, notes)
    return [_draft(entry, chosen) for entry in entries]


def _entries(text: str, notes: Notes) -> list[_Entry]:
    entries: list[_Entry] = []
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    for number, line in enumerate(lines, start=1):
        match = _HEAD.match(line)
        if match:
            first, second, third = (int(part) for part in re.findall(r"\d+", match["date"]))
            entry = _Entry(number, match["stamp"], (first, second, third), _clock(match))
            entry.lines.append(match["rest"])
            entries.append(entry)
        elif entries:
            entries[-1].lines.append(line)
        elif line.strip():
            notes.leave_out("before the first message", f"line {number}")
    return entries


def _clock(match: re.Match[str]) -> tuple[int, int, int]:
    hour = int(match["hour"])
    half = (match["after"] or "").lower()[:1] or {
        "上午": "a", "오전": "a", "午前": "a", "下午": "p", "오후": "p", "午後": "p",
    }.get(match["before"] or "", "")  # fmt: skip
    if half == "p" and hour < 12:
        hour += 12
    elif half == "a" and hour == 12:
        hour = 0
    return hour, int(match["minute"]), int(match["second"] or 0)


def _date_order(entries: Sequence[_Entry], notes: Notes) -> DateOrder:
    usual: tuple[DateOrder, ...] = ("dmy", "mdy", "ymd")
    if any(_is_unpadded(entry.stamp) for entry in entries):
        usual = ("mdy", "dmy", "ymd")  # "1/9/21" is how American phones write it
    scored: list[tuple[int, int, DateOrder]] = []
    for order in usual:
        walls = [_wall(entry, order) for entry in entries]
        known = [wall for wall in walls if wall is not None]
        backwards = sum(later < earlier for earlier, later in pairwise(known))
        scored.append((len(walls) - len(known), backwards, order))
    least = min(score[:2] for score in scored)
    best: list[DateOrder] = [score[2] for score in scored if score[:2] == least]
    if len(best) > 1 and any(entry.date[0] != entry.date[1] for entry in entries):
        notes.note(f"the dates can be {' or '.join(best)}, read as {best[0]}")
    return best[0]


def _is_unpadded(stamp: str) -> bool:
    return re.match(r"(?:\d/\d{1,2}|\d{1,2}/\d)/\d{2}\b", stamp) is not None


def _wall(entry: _Entry, order: DateOrder) -> datetime | None:
    parts = dict(zip(order, entry.date, strict=True))
    year = parts["y"]
    if year < 100 and order != "ymd":
        year += 2000  # phones that begin with the year write all four digits
    if year < 1000:
        return None
    try:
        return datetime(year, parts["m"], parts["d"], *entry.clock)  # noqa: DTZ001 (naive as written)
    except ValueError:
        return None


def _draft(entry: _Entry, order: DateOrder) -> Draft:
    body = "\n".join(entry.lines)
    match = _SPEAKER.match(body)
    where = f"line {entry.line}"
    time = Stamp(original=entry.stamp, wall=_wall(entry, order))
    if match is None:
        return Draft("system", body.lstrip(_MARKS), role="system", time=time, where=where)
    name = match["name"].strip(f" {_MARKS}")
    return Draft(name, match["text"].lstrip(_MARKS), time=time, where=where)
