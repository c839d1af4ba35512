"""A conversation as one text: each turn under a header line of its own.

    [Ana | session 3 | Tue 2024-04-02 10:15+01:00]
    I moved the spare key to the red box.

The header depends on its turn alone, so later turns change no earlier character: the text of a
conversation that grew at its end begins with the text it had before.

Can a turn forge a header? The text of a turn is kept exactly, so it may hold a line that looks
like a header of somebody else, and escaping it would break quotations. Three things stand against
that. Programs never read headers: `marks` and `spans` say where turns begin and who speaks. Names,
sessions and times go into a header without line ends and square brackets, so a *name* cannot end
one. And a turn with header-like lines says so in its own true header, which stands before them
("2 header-like lines below are part of this turn"); that note also is part of the turn's
`context`, which prompts show on every page of a turn that spans several.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hmars.errors import InputError
from hmars.indexing.turns.turn import Turn
from hmars.model import Mark, SourceText

_LONGEST_NAME = 120
_HEADER_LIKE = re.compile(r"^\W{0,8}\[[^\[\]]*\|[^\[\]]*\]\s*$")
_LINE_END = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class RenderedConversation:
    """The text with its marks, and where each turn is in it (code points, half-open)."""

    source: SourceText
    spans: Mapping[str, tuple[int, int]]
    """Turn id to its block: header, text and the empty line after it. Blocks tile the text."""
    texts: Mapping[str, tuple[int, int]]
    """Turn id to what was said: `source.text[start:end]` is `turn.text`."""


def render(
    turns: Sequence[Turn], *, conversation: str, zone: str | None = None
) -> RenderedConversation:
    """Lay out turns in the order given (that of `merge`).

    Args:
        conversation: names the document inside its namespace.
        zone: the declared zone; turns whose times were read with another one are warned of.

    Raises:
        InputError: two turns have one id (they were not merged).
    """
    blocks: list[str] = []
    marks: list[Mark] = []
    spans: dict[str, tuple[int, int]] = {}
    texts: dict[str, tuple[int, int]] = {}
    offset = 0
    for number, turn in enumerate(turns, start=1):
        if turn.id in spans:
            raise InputError(f"Two turns of '{conversation}' have the id '{turn.id}': merge them.")
        context = header(turn)
        block = f"[{context}]\n{turn.text}\n\n"
        start = offset + len(context) + 3
        marks.append(Mark(offset, _label(turn, number), context, kind="turn"))
        texts[turn.id] = (start, start + len(turn.text))
        spans[turn.id] = (offset, offset + len(block))
        blocks.append(block)
        offset += len(block)
    source = SourceText(
        text="".join(blocks),
        source=conversation,
        title=conversation,
        kind="dialogue",
        marks=tuple(marks),
        warnings=_warnings(turns, conversation, zone),
    )
    return RenderedConversation(source, spans, texts)


def header(turn: Turn) -> str:
    """Who, in which session, when; without the brackets. Depends on the turn alone."""
    parts = [_who(turn)]
    if turn.session is not None:
        parts.append(_session(turn.session))
    parts.append(when(turn))
    lines = sum(bool(_HEADER_LIKE.match(line)) for line in _LINE_END.split(turn.text))
    if lines:
        what = "line below is" if lines == 1 else "lines below are"
        parts.append(f"{lines} header-like {what} part of this turn")
    return " | ".join(parts)


def when(turn: Turn) -> str:
    """Day and time as the speaker's calendar had them, with the offset; or what is known."""
    time = turn.time
    if time.offset_s is not None:
        whole = int(time.offset_s)
        return f"at {whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
    if time.missing:
        return "no time"
    if time.at is None:
        return f"time as written: {_one_line(time.original or '')}"
    at = time.at
    day = f"{_weekday(at.weekday())} {at.date().isoformat()}"
    if time.day_only:
        return day
    assumed = f" ({_one_line(time.assumed_zone)} assumed)" if time.assumed_zone else ""
    return f"{day} {at.isoformat(timespec='minutes')[11:]}{assumed}"


def _weekday(number: int) -> str:
    """English whatever the locale, as a stored text must not depend on it."""
    return ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[number]


def _who(turn: Turn) -> str:
    name = _one_line(turn.speaker)
    obvious = turn.role in {"user", "other"} or name.casefold() == turn.role
    return name if obvious else f"{name} ({turn.role})"


def _session(session: str) -> str:
    name = _one_line(session)
    return name if name.casefold().startswith("session") else f"session {name}"


def _label(turn: Turn, number: int) -> str:
    parts = [f"turn {number}", _one_line(turn.speaker)]
    if turn.session is not None:
        parts.insert(0, _session(turn.session))
    if not turn.time.missing:
        parts.append(when(turn))
    return ", ".join(parts)


def _one_line(text: str) -> str:
    """A name that can stand in a header: one line, no brackets or bars, no invisible direction."""
    shown = " ".join(text.split())
    if not (shown.isascii() and shown.isprintable()):
        shown = "".join(char for char in shown if _is_shown(char))
    shown = shown.translate(str.maketrans("[]|", "()/")).strip() or "unknown"
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[: _LONGEST_NAME - 1]}…"


def _is_shown(char: str) -> bool:
    turns_direction = (
        char in "\u200e\u200f\u061c" or "\u202a" <= char <= "\u202e" or "\u2066" <= char <= "\u2069"
    )
    return not turns_direction and unicodedata.category(char) not in {"Cc", "Cs"}


def _warnings(turns: Sequence[Turn], conversation: str, zone: str | None) -> tuple[str, ...]:
    declared = zone or "UTC"
    others = [turn for turn in turns if turn.time.naive and turn.time.assumed_zone != declared]
    if not others:
        return ()
    return (
        f"{conversation}: {len(others)} turns without an offset were read as "
        f"{others[0].time.assumed_zone}, not as {declared}: read their file again with that zone.",
    )
