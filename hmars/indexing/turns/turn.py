"""One turn of a dialogue, its time, and what makes it the same turn when it is seen again."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from datetime import UTC, datetime
from typing import Literal

from pydantic import AwareDatetime

from hmars.model import Frozen

TurnRole = Literal["user", "assistant", "system", "other"]


class TurnTime(Frozen):
    """When a turn was said: the string of the file, and the instant where one could be read.

    `at` always has an offset, that of the turn itself where the file gives one, so that its
    calendar day is the speaker's. It is None for a time that is missing, invalid or an offset
    into a recording.
    """

    original: str | None = None
    at: AwareDatetime | None = None
    assumed_zone: str | None = None
    """The zone taken for a naive time: the conversation's declared one, else UTC."""
    day_only: bool = False
    """The file gives a day and no hour; `at` is the start of that day."""
    offset_s: float | None = None
    """Seconds from the start of a recording (captions)."""

    @property
    def naive(self) -> bool:
        return self.assumed_zone is not None

    @property
    def missing(self) -> bool:
        return self.original is None

    @property
    def invalid(self) -> bool:
        return self.original is not None and self.at is None and self.offset_s is None

    @property
    def iso(self) -> str | None:
        """ISO 8601 with an offset, or None where there is no instant."""
        return self.at.isoformat() if self.at else None

    @property
    def key(self) -> str:
        """Equal for two spellings of one instant.

        A time without an offset counts as written, so that neither the declared zone nor a guess
        at the order of day and month changes which turn it is.
        """
        if self.at is None or self.naive:
            return self.original or ""
        return self.at.astimezone(UTC).isoformat()


class Turn(Frozen):
    """What one speaker said at one time. `speaker`, `session` and `text` are kept as written."""

    id: str
    speaker: str
    text: str
    role: TurnRole = "user"
    time: TurnTime = TurnTime()
    session: str | None = None
    replies_to: str | None = None
    """The id of the turn that this one answers, where the file says so; it may be absent."""
    id_given: bool = False
    """The file gave the id; otherwise it is derived from the content."""
    sequence: int = 0
    """How many turns the conversation had taken in before this one. Set by `merge`."""
    placed_at: AwareDatetime | None = None
    """The instant that orders the turn: its own, else that of the turn taken in before it.
    None: it came before any time was known, and stands first. Set by `merge`."""

    @property
    def content_key(self) -> str:
        """Equal for two sightings of one turn, whatever their ids."""
        return content_key(self.session, self.speaker, self.time.key, self.text)


def content_key(session: str | None, speaker: str, time_key: str, text: str) -> str:
    """What makes two sightings the same turn: session, speaker, time and text.

    Composed and decomposed accents and the two kinds of line end are equal here (an export made
    on another machine differs in them); the stored text keeps its own.
    """
    return json.dumps([session, _canonical(speaker), time_key, _canonical(text)])


def derived_id(key: str, occurrence: int) -> str:
    """The id of a turn that has none: from its content and its number among equals (from 0)."""
    digest = hashlib.sha256(f"{occurrence}:{key}".encode()).hexdigest()
    return f"t{digest[:20]}"


def second_id(turn: Turn) -> str:
    """The id of a turn whose given id is taken by another turn."""
    return f"{turn.id}~{hashlib.sha256(turn.content_key.encode()).hexdigest()[:12]}"


def order_key(turn: Turn) -> tuple[bool, datetime, int]:
    """Sorts turns by instant, then by arrival; those placed before any time come first."""
    if turn.placed_at is None:
        return (False, datetime.min.replace(tzinfo=UTC), turn.sequence)
    return (True, turn.placed_at, turn.sequence)


def speaker_key(name: str) -> str:
    """Equal for spellings of one name that differ in case, accent composition or spacing.

    Accents count: "Zoe" and "Zoë" are two names.
    """
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def _canonical(text: str) -> str:
    return unicodedata.normalize("NFC", text).replace("\r\n", "\n")
