"""From what a reader found in a file to turns with ids and times.

Readers only find entries (`Draft`); everything that is the same for all formats happens here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hmars.indexing.turns.times import Zone, clean, read_time
from hmars.indexing.turns.turn import Turn, TurnRole, TurnTime, content_key, derived_id

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry of a file. `time` is as in the file; `where` names it in warnings ("line 3")."""

    speaker: str
    text: str
    role: TurnRole = "user"
    time: object = None
    session: str | None = None
    id: str | None = None
    replies_to: str | None = None
    where: str = ""


@dataclass(slots=True)
class Notes:
    """What was left out or assumed while reading one file, grouped.

    Ten thousand broken lines are one sentence with their number, not ten thousand sentences.
    """

    left_out: int = 0
    _places: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _counts: Counter[str] = field(default_factory=Counter[str])

    def note(self, what: str, where: str = "") -> None:
        self._counts[what] += 1
        places = self._places.setdefault(what, [])
        if where and len(places) < _SHOWN:
            places.append(where)

    def leave_out(self, what: str, where: str = "") -> None:
        """Count an entry that becomes no turn, and say why."""
        self.left_out += 1
        self.note(f"left out, {what}", where)

    def sentences(self, name: str) -> tuple[str, ...]:
        return tuple(f"{name}: {self._sentence(what)}." for what in self._counts)

    def _sentence(self, what: str) -> str:
        count, places = self._counts[what], self._places[what]
        named = ", ".join(places)
        if count == 1:
            return f"{named} {what}" if named else what
        more = f", and {count - len(places)} more" if count > len(places) > 0 else ""
        entries = f"{count} entries {what}"
        return f"{entries} ({named}{more})" if named else entries


def finish(drafts: Sequence[Draft], zone: Zone, notes: Notes) -> tuple[Turn, ...]:
    """Give every draft its time and id; count what is odd in `notes`.

    An entry without text is left out and counted.
    """
    seen: Counter[str] = Counter()
    turns: list[Turn] = []
    for draft in drafts:
        text = _cleaned(draft.text, draft.where, notes)
        if not text.strip():
            notes.leave_out("without text", draft.where)
            continue
        time = read_time(draft.time, zone)
        _note_time(time, zone, draft.where, notes)
        speaker = clean(draft.speaker).strip() or "unknown"
        session = clean(draft.session) if draft.session is not None else None
        key = content_key(session, speaker, time.key, text)
        given = clean(draft.id).strip() if draft.id else ""
        turn_id = given or derived_id(key, seen[key])
        if not given:
            seen[key] += 1
        turns.append(
            Turn(
                id=turn_id,
                speaker=speaker,
                text=text,
                role=draft.role,
                time=time,
                session=session,
                replies_to=clean(draft.replies_to) if draft.replies_to else None,
                id_given=bool(given),
            )
        )
    return tuple(turns)


def _cleaned(text: str, where: str, notes: Notes) -> str:
    cleaned = clean(text)
    if cleaned != text:
        notes.note("with half a character (lone surrogate), replaced", where)
    return cleaned


def _note_time(time: TurnTime, zone: Zone, where: str, notes: Notes) -> None:
    if time.naive:
        reason = "the declared zone" if zone.declared else "as no zone is declared"
        notes.note(f"with a time without offset, read as {zone.name} ({reason})", where)
    elif time.invalid:
        notes.note("with a time that cannot be read, kept in the order of the file", where)
    elif time.missing:
        notes.note("without a time, kept in the order of the file", where)
