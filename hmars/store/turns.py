"""The turns of a conversation, kept beside the text that was rendered from them.

Both are written in one transaction, as a difference. A conversation that somebody else changed
since it was read is not overwritten (`Overtaken`): the caller takes its turns in anew.

All functions run inside the caller's transaction.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from hmars.errors import StoreError
from hmars.store.bodies import chunks
from hmars.store.database import upsert
from hmars.store.schema import conversations, forgotten_turns, turns
from hmars.store.structure import ROWS_AT_ONCE


class Overtaken(StoreError):
    """The conversation is not the one that the change was made from."""


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """One turn as it is kept; times are ISO 8601 with an offset."""

    id: str
    speaker: str
    role: str
    text: str
    sequence: int
    id_given: bool = False
    session: str | None = None
    replies_to: str | None = None
    original: str | None = None
    said_at: str | None = None
    assumed_zone: str | None = None
    day_only: bool = False
    offset_s: float | None = None
    placed_at: str | None = None


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """The turns of a document, or what they are to become."""

    turns: tuple[StoredTurn, ...] = ()
    zone: str | None = None
    base: str | None = None
    """Content hash of the document that the turns belong to; None where there was none."""
    forgotten: frozenset[str] = frozenset()
    """Digests of turns that must not come back."""
    document: str | None = None
    """Id of the document; None where there is none (yet)."""


_COLUMNS = [turns.c[name] for name in StoredTurn.__dataclass_fields__]


def save(connection: Connection, document: int, wanted: StoredConversation | None) -> None:
    """Bring the turns of a document to `wanted`; None: it is no conversation (any more)."""
    mine = conversations.c.document == document
    if wanted is None:
        connection.execute(delete(conversations).where(mine))
        connection.execute(delete(turns).where(turns.c.document == document))
        return
    upsert(connection, conversations, {"document": document, "zone": wanted.zone}, ("document",))
    there = {turn.id: turn for turn in read(connection, document)}
    new = [turn for turn in wanted.turns if turn.id not in there]
    changed = [turn for turn in wanted.turns if turn.id in there and there[turn.id] != turn]
    gone = there.keys() - {turn.id for turn in wanted.turns}
    for chunk in chunks(sorted(gone)):
        connection.execute(delete(turns).where(turns.c.document == document, turns.c.id.in_(chunk)))
    if changed:
        place = (turns.c.document == document) & (turns.c.id == bindparam("wanted_id"))
        connection.execute(
            update(turns).where(place), [asdict(turn) | {"wanted_id": turn.id} for turn in changed]
        )
    for start in range(0, len(new), ROWS_AT_ONCE):
        rows = [asdict(turn) | {"document": document} for turn in new[start : start + ROWS_AT_ONCE]]
        connection.execute(insert(turns), rows)


def read(connection: Connection, document: int) -> tuple[StoredTurn, ...]:
    """The turns of a document in the order in which they were taken in."""
    found = select(*_COLUMNS).where(turns.c.document == document).order_by(turns.c.sequence)
    return tuple(StoredTurn(**row) for row in connection.execute(found).mappings())


def zone_of(connection: Connection, document: int) -> tuple[bool, str | None]:
    """Whether the document is a conversation, and its declared zone."""
    row = connection.execute(
        select(conversations.c.zone).where(conversations.c.document == document)
    ).first()
    return row is not None, row.zone if row else None


def forget_keys(
    connection: Connection, namespace: str, source_key: str, keys: frozenset[str]
) -> None:
    """Remember which turns must not come back."""
    for key in sorted(keys - forgotten_keys(connection, namespace, source_key)):
        values = {"namespace": namespace, "source_key": source_key, "key": key}
        connection.execute(insert(forgotten_turns).values(values))


def forgotten_keys(connection: Connection, namespace: str, source_key: str) -> frozenset[str]:
    found = select(forgotten_turns.c.key).where(_of(namespace, source_key))
    return frozenset(connection.scalars(found))


def drop_forgotten(connection: Connection, namespace: str, source_key: str) -> None:
    """The whole conversation is forgotten: one of the same name begins anew."""
    connection.execute(delete(forgotten_turns).where(_of(namespace, source_key)))


def _of(namespace: str, source_key: str) -> Any:  # noqa: ANN401 - an SQL condition
    return (forgotten_turns.c.namespace == namespace) & (forgotten_turns.c.source_key == source_key)


def check_base(there: str | None, wanted: StoredConversation) -> None:
    """Refuse a change that was made from another state.

    Raises:
        Overtaken: it was.
    """
    if there != wanted.base:
        raise Overtaken("The conversation was changed meanwhile: append to it again.")
