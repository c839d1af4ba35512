"""Cards and regional memories: content-addressed in their namespace, attached to their text.

Both behave alike. A card belongs to a region's key, a regional memory to a group's key; it lives
as long as a document of the namespace holds that text, whoever wrote it, so that trying another
model throws nothing away. It is attached by the text's key, never by a number: a run that was
overtaken by an edit cannot attach a card to other text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError
from sqlalchemy import Connection, Table, delete, select, update

from hmars.errors import NotFoundError, StoreError
from hmars.model import MemoryCard, RegionalMemory
from hmars.store.database import upsert
from hmars.store.schema import cards, documents, groups, memories, regions

Body = TypeVar("Body", MemoryCard, RegionalMemory)
AT_ONCE = 500
"""Values in one IN list."""


@dataclass(frozen=True)
class Shelf(Generic[Body]):
    """One kind of body, and the rows of a document's structure that it is attached to."""

    bodies: Table
    places: Table
    type: type[Body]

    def parse(self, text: str) -> Body:
        try:
            return self.type.model_validate_json(text)
        except ValidationError:
            raise StoreError(
                f"The store holds a {self.type.__name__} that cannot be read: "
                "it was damaged or written by another version of hmars."
            ) from None


CARDS = Shelf(cards, regions, MemoryCard)
MEMORIES = Shelf(memories, groups, RegionalMemory)


def put(
    connection: Connection,
    shelf: Shelf[Body],
    namespace: str,
    document: int,
    content_key: str,
    key: str,
    body: Body,
) -> None:
    """Store a body and attach it. A degraded one never takes the place of a good one.

    Raises:
        NotFoundError: the document does not hold this text any more (edited or forgotten
            meanwhile), so nothing made from it is kept.
    """
    places = shelf.places.c
    place = select(places.id).where(places.document == document, places.key == content_key)
    if connection.execute(place.limit(1)).first() is None:
        raise NotFoundError("The text was edited while it was being read: index it again.")
    upsert(
        connection,
        shelf.bodies,
        {
            "namespace": namespace,
            "key": key,
            "content_key": content_key,
            "degraded": body.degraded is not None,
            "body": body.model_dump_json(),
        },
        ("namespace", "key", "content_key"),
        keep="degraded",
    )
    attach(connection, shelf, namespace, document, {content_key: key})


def attach(
    connection: Connection,
    shelf: Shelf[Body],
    namespace: str,
    document: int,
    wanted: Mapping[str, str],
) -> dict[str, Body]:
    """Attach the bodies that are there, given content key -> body key; return them by content key.

    The same rule holds: a good body that is attached stays where only a degraded one is offered.
    """
    bodies, places = shelf.bodies.c, shelf.places.c
    result: dict[str, Body] = {}
    for chunk in chunks(list(wanted.values())):
        found = select(shelf.bodies).where(bodies.namespace == namespace, bodies.key.in_(chunk))
        for row in connection.execute(found).all():
            if wanted.get(row.content_key) != row.key:
                continue
            result[row.content_key] = shelf.parse(row.body)
            place = update(shelf.places).where(
                places.document == document, places.key == row.content_key
            )
            if row.degraded:
                good = select(bodies.id).where(bodies.degraded.is_(False))
                place = place.where(places.body_id.is_(None) | places.body_id.not_in(good))
            connection.execute(place.values(body_id=row.id))
    return result


def read(
    connection: Connection, shelf: Shelf[Body], namespace: str, keys: Sequence[str]
) -> dict[str, Body]:
    """The bodies with these keys that are there, by key."""
    bodies = shelf.bodies.c
    result: dict[str, Body] = {}
    for chunk in chunks(keys):
        found = select(bodies.key, bodies.body).where(
            bodies.namespace == namespace, bodies.key.in_(chunk)
        )
        result.update((row.key, shelf.parse(row.body)) for row in connection.execute(found))
    return result


def attached(connection: Connection, shelf: Shelf[Body], document: int) -> dict[int, Body]:
    """The bodies of a document by the position of their region or group."""
    bodies, places = shelf.bodies.c, shelf.places.c
    found = (
        select(places.position, bodies.body)
        .join_from(shelf.places, shelf.bodies, bodies.id == places.body_id)
        .where(places.document == document)
        .order_by(places.position)
    )
    return {row.position: shelf.parse(row.body) for row in connection.execute(found)}


def drop_unused(
    connection: Connection, namespace: str, shelf: Shelf[Body], content_keys: Collection[str]
) -> int:
    """Delete what belongs to these texts, where no document of the namespace holds them now."""
    bodies, places = shelf.bodies.c, shelf.places.c
    held = (
        select(places.id)
        .join_from(shelf.places, documents, documents.c.number == places.document)
        .where(places.key == bodies.content_key, documents.c.namespace == namespace)
        .exists()
    )
    count = 0
    for chunk in chunks(sorted(content_keys)):
        unused = delete(shelf.bodies).where(
            bodies.namespace == namespace, bodies.content_key.in_(chunk), ~held
        )
        count += connection.execute(unused).rowcount
    return count


def chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(values), AT_ONCE):
        yield values[start : start + AT_ONCE]
