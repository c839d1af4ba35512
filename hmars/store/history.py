"""Replies that were paid for, and the history of calls."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, bindparam, case, delete, func, insert, select

from hmars.model import CallRecord, Usage
from hmars.store.database import upsert
from hmars.store.schema import calls, documents, replies, reply_documents

FINE = ("ok", "cached")
DAY = len("2026-01-31")

# Built once: a wide fan-out runs these a thousand times a second.
_MINE = (replies.c.namespace == bindparam("namespace")) & (replies.c.key == bindparam("key"))
_PAYLOAD = select(replies.c.payload).where(_MINE)
_REPLY = select(replies.c.id).where(_MINE)
_UNLINK = delete(reply_documents).where(reply_documents.c.reply == bindparam("reply_id"))
_LINK = insert(reply_documents)
_LOG = insert(calls)
_DOCUMENTS = select(documents.c.number).where(
    documents.c.namespace == bindparam("namespace"),
    documents.c.id.in_(bindparam("ids", expanding=True)),
)


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What one model cost in one role on one day (UTC)."""

    day: str
    role: str
    model: str
    requests: int
    """Questions asked, also those that the cache answered or that failed."""
    failed: int
    usage: Usage
    seconds: float


def get_reply(connection: Connection, namespace: str, key: str) -> str | None:
    return connection.scalar(_PAYLOAD, {"namespace": namespace, "key": key})


def put_reply(
    connection: Connection, namespace: str, key: str, payload: str, document_ids: Sequence[str]
) -> bool:
    """Keep a reply until one of its documents is edited or forgotten.

    Returns False, and keeps nothing, where one of them is not there (any more): a reply that
    arrives after its document was forgotten must not bring its text back.
    """
    wanted = {"namespace": namespace, "ids": sorted(set(document_ids)), "key": key}
    numbers: Sequence[int] = connection.scalars(_DOCUMENTS, wanted).all() if document_ids else []
    if len(numbers) != len(wanted["ids"]):
        return False
    values = {"namespace": namespace, "key": key, "payload": payload}
    upsert(connection, replies, values, ("namespace", "key"))
    if numbers:
        reply = connection.scalar(_REPLY, wanted)
        connection.execute(_UNLINK, {"reply_id": reply})
        connection.execute(_LINK, [{"reply": reply, "document": number} for number in numbers])
    return True


def log_call(connection: Connection, namespace: str, record: CallRecord) -> None:
    usage = record.usage
    values = {
        "namespace": namespace,
        "at": record.ts,
        "role": record.role,
        "model": record.model,
        "prompt": record.prompt,
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
        "reasks": usage.reasks,
        "retries": usage.retries,
        "paths": json.dumps(usage.paths, sort_keys=True) if usage.paths else None,
        "seconds": record.seconds,
        "outcome": record.outcome,
    }
    connection.execute(_LOG, values)


def usage_history(connection: Connection, namespace: str, since: str | None) -> list[UsageRow]:
    """Sums by day, role and model, oldest day first; `since` is an ISO 8601 date or time."""
    day = func.substr(calls.c.at, 1, DAY).label("day")
    failed = case((calls.c.outcome.in_(FINE), 0), else_=1)
    numbers = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "reasks", "retries")
    statement = (
        select(
            day,
            calls.c.role,
            calls.c.model,
            func.count().label("requests"),
            func.sum(failed).label("failed"),
            func.sum(calls.c.seconds).label("total_seconds"),
            *(func.sum(calls.c[name]).label(f"sum_{name}") for name in numbers),
        )
        .where(_within(namespace, since))
        .group_by("day", calls.c.role, calls.c.model)
        .order_by("day", calls.c.role, calls.c.model)
    )
    paths = _paths(connection, namespace, since)
    return [
        UsageRow(
            day=row.day,
            role=row.role,
            model=row.model,
            requests=row.requests,
            failed=int(row.failed),
            usage=Usage(
                **{name: int(getattr(row, f"sum_{name}")) for name in numbers},
                paths=paths.get((row.day, row.role, row.model), {}),
            ),
            seconds=float(row.total_seconds),
        )
        for row in connection.execute(statement)
    ]


def _paths(
    connection: Connection, namespace: str, since: str | None
) -> dict[tuple[str, str, str], dict[str, int]]:
    statement = select(calls.c.at, calls.c.role, calls.c.model, calls.c.paths).where(
        _within(namespace, since), calls.c.paths.is_not(None)
    )
    sums: dict[tuple[str, str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in connection.execute(statement):
        for path, count in json.loads(row.paths).items():
            sums[row.at[:DAY], row.role, row.model][path] += count
    return {group: dict(sorted(counts.items())) for group, counts in sums.items()}


def _within(namespace: str, since: str | None) -> ColumnElement[bool]:
    mine = calls.c.namespace == namespace
    return mine if since is None else mine & (calls.c.at >= since)
