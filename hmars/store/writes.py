"""Small writes as work for a transaction: both faces of the store share them.

`AsyncStore` joins those that wait at the same moment into one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from hmars.model import CallRecord, MemoryCard, Region, RegionalMemory
from hmars.store import bodies, documents, history
from hmars.store.bodies import CARDS, MEMORIES
from hmars.store.keys import group_key


def put_card(
    namespace: str, document_id: str, region: Region, key: str, card: MemoryCard
) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        number = documents.number_of(connection, namespace, document_id)
        bodies.put(connection, CARDS, namespace, number, region.key, key, card)

    return work


def put_memory(
    namespace: str,
    document_id: str,
    regions: Sequence[Region],
    key: str,
    memory: RegionalMemory,
) -> Callable[[Connection], None]:
    content_key = group_key(regions)

    def work(connection: Connection) -> None:
        number = documents.number_of(connection, namespace, document_id)
        bodies.put(connection, MEMORIES, namespace, number, content_key, key, memory)

    return work


def put_reply(
    namespace: str, key: str, payload: str, document_ids: Sequence[str]
) -> Callable[[Connection], bool]:
    return lambda c: history.put_reply(c, namespace, key, payload, document_ids)


def log_call(namespace: str, record: CallRecord) -> Callable[[Connection], None]:
    return lambda c: history.log_call(c, namespace, record)
