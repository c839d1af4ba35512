"""Parts of a conversation: without forgotten turns, as of a time, of one speaker."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from hmars.errors import InputError, NotFoundError
from hmars.indexing.turns.turn import Turn, speaker_key


def forget_turns(
    turns: Sequence[Turn], *, ids: Collection[str] = (), before: datetime | None = None
) -> tuple[Turn, ...]:
    """What remains without the turns of these ids and those said before an instant.

    A turn without a time goes with its neighbour: the turn it stands after, or, at the start of
    the conversation, the first turn that has a time. The others keep their ids and order.

    Raises:
        NotFoundError: an id is not in the conversation; nothing is forgotten then.
        InputError: `before` has no offset.
    """
    _check_aware(before)
    wanted = frozenset(ids)
    if unknown := wanted - {turn.id for turn in turns}:
        raise NotFoundError(
            f"There is no turn '{min(unknown)}' in this conversation; nothing was forgotten."
        )
    first = next((turn.placed_at for turn in turns if turn.placed_at is not None), None)

    def stays(turn: Turn) -> bool:
        if turn.id in wanted:
            return False
        moment = turn.placed_at or first
        return before is None or moment is None or moment >= before

    return tuple(turn for turn in turns if stays(turn))


def as_of(turns: Sequence[Turn], time: datetime) -> tuple[Turn, ...]:
    """The turns said up to and at an instant; one without a time goes with its neighbour.

    Raises:
        InputError: `time` has no offset.
    """
    _check_aware(time)
    first = next((turn.placed_at for turn in turns if turn.placed_at is not None), None)

    def is_said(turn: Turn) -> bool:
        moment = turn.placed_at or first
        return moment is None or moment <= time

    return tuple(turn for turn in turns if is_said(turn))


def by_speaker(turns: Sequence[Turn], speaker: str) -> tuple[Turn, ...]:
    """The turns of one speaker by full name; case, spacing and accent composition do not count."""
    key = speaker_key(speaker)
    return tuple(turn for turn in turns if speaker_key(turn.speaker) == key)


def _check_aware(time: datetime | None) -> None:
    if time is not None and time.utcoffset() is None:
        raise InputError(f"The time {time.isoformat()} has no offset: write it as +00:00, say.")
