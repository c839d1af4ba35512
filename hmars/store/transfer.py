"""A document with all that was made of it, out of one store and into another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from hmars.errors import ConfigError
from hmars.model import DocumentIndex
from hmars.store import bodies, documents, turns
from hmars.store.bodies import CARDS, MEMORIES, Shelf
from hmars.store.keys import source_key
from hmars.store.plan import DocumentPlan
from hmars.store.schema import documents as documents_table
from hmars.store.turns import StoredConversation


@dataclass(frozen=True, slots=True)
class KeptBody:
    """A card or regional memory as JSON, under its address, with the text it belongs to."""

    content_key: str
    key: str
    body: str


@dataclass(frozen=True)
class Transfer:
    """All that one document is in a store."""

    index: DocumentIndex
    settings: Mapping[str, Any]
    conversation: StoredConversation | None
    cards: tuple[KeptBody, ...]
    memories: tuple[KeptBody, ...]


def read(connection: Connection, namespace: str, index: DocumentIndex) -> Transfer:
    """What belongs to a document beside its index."""
    identity = index.document.id
    number = documents.number_of(connection, namespace, identity)
    is_one, _ = turns.zone_of(connection, number)
    return Transfer(
        index,
        documents.settings_of(connection, namespace, identity),
        documents.conversation_of(connection, namespace, index.document.source) if is_one else None,
        _attached(connection, CARDS, number),
        _attached(connection, MEMORIES, number),
    )


def write(
    connection: Connection,
    namespace: str,
    plan: DocumentPlan,
    now: str,
    conversation: StoredConversation | None,
    cards: Sequence[KeptBody],
    memories: Sequence[KeptBody],
) -> str:
    """Save a document with its cards and regional memories; its id.

    Raises:
        ConfigError: there is a document from the same source with another text.
    """
    there = connection.scalar(
        select(documents_table.c.content_hash).where(
            documents_table.c.namespace == namespace,
            documents_table.c.source_key == source_key(plan.source.source),
        )
    )
    if there not in (None, plan.content_hash):
        raise ConfigError(
            f"The namespace '{namespace}' has a document from {plan.source.source} with another "
            "text: forget it first, or import into another namespace."
        )
    identity = documents.save(connection, namespace, plan, now, conversation)
    number = documents.number_of(connection, namespace, identity)
    for kept in cards:
        card = CARDS.parse(kept.body)
        bodies.put(connection, CARDS, namespace, number, kept.content_key, kept.key, card)
    for kept in memories:
        memory = MEMORIES.parse(kept.body)
        bodies.put(connection, MEMORIES, namespace, number, kept.content_key, kept.key, memory)
    return identity


def _attached(connection: Connection, shelf: Shelf[Any], number: int) -> tuple[KeptBody, ...]:
    columns, places = shelf.bodies.c, shelf.places.c
    found = (
        select(columns.content_key, columns.key, columns.body)
        .join_from(shelf.places, shelf.bodies, columns.id == places.body_id)
        .where(places.document == number)
        .order_by(places.position)
    )
    rows = connection.execute(found)
    kept = [KeptBody(row.content_key, row.key, row.body) for row in rows]
    return tuple(dict.fromkeys(kept))
