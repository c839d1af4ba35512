"""Turns as the store keeps them, and how a forgotten one is known again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime

from hmars.indexing.turns.turn import Turn, TurnTime, order_key, second_id, speaker_key
from hmars.store import StoredConversation, StoredTurn


def turns_of(kept: StoredConversation) -> tuple[Turn, ...]:
    """The turns of a stored conversation in their order of time, as `merge` left them."""
    return tuple(sorted(map(_turn, kept.turns), key=order_key))


def stored(turns: Sequence[Turn]) -> tuple[StoredTurn, ...]:
    """Turns as the store takes them."""
    return tuple(map(_stored, turns))


def forgotten_key(turn: Turn) -> str:
    """What is remembered of a forgotten turn, so that an old export does not bring it back.

    A digest of its id, session, speaker and time, as an edited text is still the same turn; of the
    text as well where there is no time, as numbers of turns may start anew in each file.
    """
    suffix = second_id(turn).removeprefix(turn.id)
    parts = [
        turn.id.removesuffix(suffix),
        turn.session,
        speaker_key(turn.speaker),
        turn.content_key if turn.time.missing else turn.time.key,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _turn(kept: StoredTurn) -> Turn:
    return Turn.model_construct(
        id=kept.id,
        speaker=kept.speaker,
        text=kept.text,
        role=kept.role,
        time=TurnTime.model_construct(
            original=kept.original,
            at=_instant(kept.said_at),
            assumed_zone=kept.assumed_zone,
            day_only=kept.day_only,
            offset_s=kept.offset_s,
        ),
        session=kept.session,
        replies_to=kept.replies_to,
        id_given=kept.id_given,
        sequence=kept.sequence,
        placed_at=_instant(kept.placed_at),
    )


def _stored(turn: Turn) -> StoredTurn:
    return StoredTurn(
        id=turn.id,
        speaker=turn.speaker,
        role=turn.role,
        text=turn.text,
        sequence=turn.sequence,
        id_given=turn.id_given,
        session=turn.session,
        replies_to=turn.replies_to,
        original=turn.time.original,
        said_at=turn.time.iso,
        assumed_zone=turn.time.assumed_zone,
        day_only=turn.time.day_only,
        offset_s=turn.time.offset_s,
        placed_at=turn.placed_at.isoformat() if turn.placed_at else None,
    )


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
