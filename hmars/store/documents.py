"""Documents and their structure: saved as a difference, listed, found, forgotten.

All functions run inside the caller's transaction.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, case, delete, func, insert, select, update

from hmars.errors import ConfigError, NotFoundError
from hmars.model import Document
from hmars.store import turns
from hmars.store.bodies import CARDS, MEMORIES, drop_unused
from hmars.store.keys import document_ids, source_key
from hmars.store.plan import DocumentPlan
from hmars.store.schema import cards, documents, groups, regions, replies, reply_documents
from hmars.store.structure import save_groups, save_regions
from hmars.store.turns import StoredConversation

MENTIONED = 5
"""Documents named in a message about one that was not found."""


def save(
    connection: Connection,
    namespace: str,
    plan: DocumentPlan,
    now: str,
    conversation: StoredConversation | None = None,
) -> str:
    """Put a document in place of its earlier version, if any, and give its id.

    Writes nothing at all where nothing changed.

    Raises:
        Overtaken: the turns of `conversation` were made from another state of it.
    """
    old = _of_source(connection, namespace, source_key(plan.source.source))
    if conversation is not None:
        turns.check_base(old.content_hash if old else None, conversation)
    identity = _save(connection, namespace, plan, now, old)
    number = number_of(connection, namespace, identity)
    turns.save(connection, number, conversation)
    if conversation is not None and conversation.forgotten:
        key = source_key(plan.source.source)
        turns.forget_keys(connection, namespace, key, conversation.forgotten)
    return identity


def _of_source(connection: Connection, namespace: str, key: str) -> Row[Any] | None:
    mine = (documents.c.namespace == namespace) & (documents.c.source_key == key)
    return connection.execute(select(documents).where(mine)).first()


def _save(
    connection: Connection, namespace: str, plan: DocumentPlan, now: str, old: Row[Any] | None
) -> str:
    source = plan.source
    if old is None:
        identity = _new_id(connection, namespace, plan)
        values = plan.columns() | {
            "namespace": namespace,
            "id": identity,
            "source_key": source_key(source.source),
            "source": source.source,
            "version": 1,
            "updated": now,
        }
        number = connection.execute(
            insert(documents).values(values).returning(documents.c.number)
        ).scalar_one()
        save_regions(connection, number, plan)
        save_groups(connection, number, plan)
        return identity
    if any(getattr(old, name) != value for name, value in plan.columns().items()):
        _replace(connection, namespace, old, plan, now)
    return old.id


def _replace(
    connection: Connection, namespace: str, old: Row[Any], plan: DocumentPlan, now: str
) -> None:
    number: int = old.number
    edited = old.content_hash != plan.content_hash
    connection.execute(
        update(documents)
        .where(documents.c.number == number)
        .values(plan.columns() | {"version": old.version + edited, "updated": now})
    )
    if edited:
        _drop_replies(connection, number)
    if old.structure_hash != plan.structure_hash:
        drop_unused(connection, namespace, CARDS, save_regions(connection, number, plan))
        drop_unused(connection, namespace, MEMORIES, save_groups(connection, number, plan))


def _new_id(connection: Connection, namespace: str, plan: DocumentPlan) -> str:
    for identity in document_ids(namespace, plan.source.source, plan.source.title):
        taken = select(documents.c.number).where(
            documents.c.namespace == namespace, documents.c.id == identity
        )
        if connection.execute(taken).first() is None:
            return identity
    raise AssertionError("two sources share a whole SHA-256")


def listed(connection: Connection, namespace: str, identity: str | None = None) -> list[Document]:
    """All documents of a namespace by title, or the one with this id, with what they lack."""
    missing = case(((regions.c.blank.is_(False)) & (regions.c.body_id.is_(None)), 1), else_=0)
    counts = (
        select(
            regions.c.document,
            func.sum(missing).label("missing"),
            func.sum(case((cards.c.degraded.is_(True), 1), else_=0)).label("degraded"),
        )
        .join(documents, documents.c.number == regions.c.document)
        .outerjoin(cards, cards.c.id == regions.c.body_id)
        .where(documents.c.namespace == namespace)
        .group_by(regions.c.document)
    )
    if identity is not None:
        counts = counts.where(documents.c.id == identity)
    totals = counts.subquery()
    statement = (
        select(documents, totals.c.missing, totals.c.degraded)
        .join(totals, totals.c.document == documents.c.number)
        .order_by(documents.c.title, documents.c.id)
    )
    return [_document(row) for row in connection.execute(statement)]


def _document(row: Row[Any]) -> Document:
    return Document(
        id=row.id,
        namespace=row.namespace,
        title=row.title,
        source=row.source,
        kind=row.kind,
        content_hash=row.content_hash,
        characters=row.characters,
        tokens=row.tokens,
        pages=row.page_count,
        regions=row.region_count,
        groups=row.group_count,
        tokenizer=row.tokenizer,
        updated=row.updated,
        version=row.version,
        cards_missing=row.missing,
        cards_degraded=row.degraded,
        warnings=tuple(json.loads(row.warnings)),
    )


def found(connection: Connection, namespace: str, identity: str) -> Document:
    """The document with exactly this id.

    Raises:
        NotFoundError: not in this namespace.
    """
    documents_found = listed(connection, namespace, identity)
    if not documents_found:
        raise _not_found(connection, namespace, identity)
    return documents_found[0]


def resolve(connection: Connection, namespace: str, ref: str) -> Document:
    """The document that `ref` names: its id, its source, its title, or the start of its id.

    Raises:
        NotFoundError: none, or several; the message names some that are there.
    """
    if not ref:
        raise _not_found(connection, namespace, ref)
    sources = {source_key(ref), source_key(os.path.abspath(ref))}  # noqa: PTH100 - text only
    like_an_id = ref.encode("utf-8", "replace").decode()  # an odd file name is no id
    for condition in (
        documents.c.id == like_an_id,
        documents.c.source_key.in_(sources),
        documents.c.title == ref,
        documents.c.id.startswith(like_an_id, autoescape=True),
    ):
        ids = connection.scalars(
            select(documents.c.id)
            .where(documents.c.namespace == namespace, condition)
            .order_by(documents.c.id)
        ).all()
        if len(ids) == 1:
            return found(connection, namespace, ids[0])
        if ids:
            raise NotFoundError(
                f"'{ref}' names several documents: use the id of one ({_some(ids)})."
            )
    raise _not_found(connection, namespace, ref)


def _not_found(connection: Connection, namespace: str, ref: str) -> NotFoundError:
    ids = connection.scalars(
        select(documents.c.id).where(documents.c.namespace == namespace).order_by(documents.c.id)
    ).all()
    there = _some(ids) if ids else "it has none yet"
    return NotFoundError(f"There is no document '{ref}' in the namespace '{namespace}' ({there}).")


def _some(ids: Any) -> str:  # noqa: ANN401 - a sequence of rows' strings
    more = f" and {len(ids) - MENTIONED} more" if len(ids) > MENTIONED else ""
    return f"there: {', '.join(ids[:MENTIONED])}{more}"


def number_of(connection: Connection, namespace: str, identity: str) -> int:
    """The row number of a document.

    Raises:
        NotFoundError: not in this namespace.
    """
    number = connection.scalar(
        select(documents.c.number).where(
            documents.c.namespace == namespace, documents.c.id == identity
        )
    )
    if number is None:
        raise _not_found(connection, namespace, identity)
    return number


def conversation_of(
    connection: Connection, namespace: str, source: str, with_turns: bool = True
) -> StoredConversation | None:
    """The turns of the document with this source; None where there is no such document.

    Raises:
        ConfigError: there is one that is no conversation.
    """
    key = source_key(source)
    forgotten = turns.forgotten_keys(connection, namespace, key)
    row = _of_source(connection, namespace, key)
    if row is None:
        return StoredConversation(forgotten=forgotten) if forgotten else None
    is_one, zone = turns.zone_of(connection, row.number)
    if not is_one:
        raise ConfigError(f"'{source}' is a document, not a conversation: choose another name.")
    said = turns.read(connection, row.number) if with_turns else ()
    return StoredConversation(said, zone, row.content_hash, forgotten, row.id)


def settings_of(connection: Connection, namespace: str, identity: str) -> Mapping[str, Any]:
    number = number_of(connection, namespace, identity)
    text = connection.scalar(select(documents.c.settings).where(documents.c.number == number))
    return json.loads(text or "{}")


def forget(
    connection: Connection,
    namespace: str,
    identity: str,
    remembered: frozenset[str] = frozenset(),
) -> tuple[int, int, int]:
    """Remove a document with all that was made from its text alone.

    Of `remembered` turns only digests stay, so that they do not come back; of others nothing.
    Returns how many cards, regional memories and cached replies went with it.
    """
    number = number_of(connection, namespace, identity)
    key = connection.scalar(select(documents.c.source_key).where(documents.c.number == number))
    if remembered:
        turns.forget_keys(connection, namespace, str(key), remembered)
    else:
        turns.drop_forgotten(connection, namespace, str(key))
    region_keys = connection.scalars(select(regions.c.key).where(regions.c.document == number))
    group_keys = connection.scalars(select(groups.c.key).where(groups.c.document == number))
    gone = set(region_keys), set(group_keys)
    reply_count = _drop_replies(connection, number)
    connection.execute(delete(documents).where(documents.c.number == number))
    return (
        drop_unused(connection, namespace, CARDS, gone[0]),
        drop_unused(connection, namespace, MEMORIES, gone[1]),
        reply_count,
    )


def _drop_replies(connection: Connection, number: int) -> int:
    linked = select(reply_documents.c.reply).where(reply_documents.c.document == number)
    return connection.execute(delete(replies).where(replies.c.id.in_(linked))).rowcount
