"""The store: everything hmars keeps, behind one synchronous, thread-safe face."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, select

from hmars.errors import ConfigError
from hmars.model import (
    CallRecord,
    Document,
    DocumentIndex,
    Group,
    MemoryCard,
    Page,
    Region,
    RegionalMemory,
    SourceText,
)
from hmars.store import bodies, documents, history, structure, transfer, turns
from hmars.store.bodies import CARDS, MEMORIES
from hmars.store.database import Database
from hmars.store.history import UsageRow
from hmars.store.keys import group_key
from hmars.store.plan import DocumentPlan
from hmars.store.schema import documents as documents_table
from hmars.store.transfer import KeptBody, Transfer
from hmars.store.turns import StoredConversation
from hmars.store.writes import put_card, put_memory, put_reply

Result = TypeVar("Result")
BUSY_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was removed with a document. What another document holds as well stays."""

    document: Document
    cards: int
    memories: int
    replies: int
    scrubbed: bool
    """False: somebody was reading, so bytes of it stay in the write-ahead log until the next
    `scrub()` or until the last one to use the store closes it."""


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Store:
    """Documents, cards, regional memories, replies and calls; every namespace sees only itself.

    Each method that writes is one transaction: on return it is on disk, on any error (disk full,
    read-only, locked) nothing of it is. Several threads, processes and `Store` objects may use
    one store at once. All methods raise `StoreError` where the store cannot be used, and
    `NotFoundError` where a document is not in the namespace.
    """

    def __init__(self, database: Database, clock: Callable[[], str] = utc_now) -> None:
        self._database = database
        self._clock = clock

    @classmethod
    def open(
        cls,
        location: str | Path,
        *,
        create: bool = True,
        read_only: bool = False,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        clock: Callable[[], str] = utc_now,
    ) -> Store:
        """Open the store at a path or an SQLAlchemy URL; make it, with its folder, if need be.

        Raises:
            StoreError: it is not there and not to be made, or it is foreign, cut off, damaged, of
                a newer version or out of reach. It is left as it was.
        """
        database = Database.open(
            location, create=create, read_only=read_only, busy_timeout_s=busy_timeout_s
        )
        return cls(database, clock)

    @property
    def location(self) -> str:
        """Path or URL (without password)."""
        return self._database.location

    @property
    def read_only(self) -> bool:
        """Asked for, or the file or its folder cannot be written to: writing raises StoreError."""
        return self._database.read_only

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` on one unchanging state of the store."""
        return self._database.read(work)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` in one transaction of its own."""
        return self._database.write(work)

    # ------------------------------------------------------------ documents

    def save_document(
        self,
        namespace: str,
        source: SourceText,
        regions: Sequence[Region],
        groups: Sequence[Group],
        *,
        tokenizer: str,
        tokens: int,
        settings: Mapping[str, Any],
        conversation: StoredConversation | None = None,
    ) -> Document:
        """Put a document in place of what was saved from the same `source.source`.

        Only regions that changed are written. Cards and regional memories stay where the text is
        still held; cached replies of the document go if its text changed. Saving the same again
        changes nothing. The regions' `document` is not looked at: the id is given here.

        Raises:
            Overtaken: the turns of `conversation` were made from another state of it.
        """
        _check_namespace(namespace)
        plan = DocumentPlan(source, regions, groups, tokenizer, tokens, settings)
        plan.check()
        plan.columns()  # hashes are made before the transaction holds up others
        now = self._clock()

        def work(connection: Connection) -> Document:
            identity = documents.save(connection, namespace, plan, now, conversation)
            return documents.found(connection, namespace, identity)

        return self._database.write(work)

    def conversation(
        self, namespace: str, source: str, *, with_turns: bool = True
    ) -> StoredConversation | None:
        """The conversation with this name, its turns in order of arrival; None: none yet.

        Raises:
            ConfigError: the name belongs to a document that is no conversation.
        """
        return self._database.read(
            lambda c: documents.conversation_of(c, namespace, source, with_turns)
        )

    def document(self, namespace: str, ref: str) -> Document:
        """The document that `ref` names: id, source path, title, or unique start of an id."""
        return self._database.read(lambda c: documents.resolve(c, namespace, ref))

    def documents(self, namespace: str) -> list[Document]:
        """All documents of a namespace, by title."""
        return self._database.read(lambda c: documents.listed(c, namespace))

    def namespaces(self) -> list[str]:
        """Namespaces that hold a document, by name."""
        column = documents_table.c.namespace
        names = select(column).distinct().order_by(column)
        return self._database.read(lambda c: list(c.scalars(names)))

    def document_settings(self, namespace: str, document_id: str) -> Mapping[str, Any]:
        """The settings given when it was saved."""
        return self._database.read(lambda c: documents.settings_of(c, namespace, document_id))

    def load_index(self, namespace: str, document_id: str) -> DocumentIndex:
        """A document with its text, structure, cards and regional memories, of one moment."""
        return self._database.read(lambda c: _index(c, namespace, document_id))

    def load_dialogue(
        self, namespace: str, document_id: str
    ) -> tuple[DocumentIndex, StoredConversation | None]:
        """As `load_index`, with the turns of the same moment; None where it has none."""

        def work(connection: Connection) -> tuple[DocumentIndex, StoredConversation | None]:
            number = documents.number_of(connection, namespace, document_id)
            is_one, zone = turns.zone_of(connection, number)
            said = StoredConversation(turns.read(connection, number), zone) if is_one else None
            return _index(connection, namespace, document_id), said

        return self._database.read(work)

    def pages(
        self, namespace: str, document_id: str, first: int = 1, last: int | None = None
    ) -> list[Page]:
        """Pages `first` to `last`, both included, as far as they exist."""

        def work(connection: Connection) -> list[Page]:
            document = documents.found(connection, namespace, document_id)
            number = documents.number_of(connection, namespace, document_id)
            end = document.pages if last is None else last
            return structure.read_pages(connection, number, first, end)

        return self._database.read(work)

    def forget(
        self, namespace: str, document_id: str, remembered: frozenset[str] = frozenset()
    ) -> ForgetReport:
        """Remove a document: text, structure, cards, regional memories and cached replies.

        Their bytes are overwritten in the file. The id must be exact. `remembered` are digests of
        turns that must not come back into a conversation of this name.
        """

        def work(connection: Connection) -> tuple[Document, tuple[int, int, int]]:
            document = documents.found(connection, namespace, document_id)
            return document, documents.forget(connection, namespace, document_id, remembered)

        document, (cards, memories, replies) = self._database.write(work)
        return ForgetReport(document, cards, memories, replies, self.scrub())

    def transfer(self, namespace: str, document_id: str) -> Transfer:
        """A document with all that was made of it, of one moment."""
        return self._database.read(
            lambda c: transfer.read(c, namespace, _index(c, namespace, document_id))
        )

    def take_in(
        self,
        namespace: str,
        plan: DocumentPlan,
        conversation: StoredConversation | None,
        cards: Sequence[KeptBody],
        memories: Sequence[KeptBody],
    ) -> Document:
        """Save what `transfer` gave of another store, all of it or nothing.

        Raises:
            ConfigError: there is a document from the same source with another text.
        """
        _check_namespace(namespace)
        plan.check()
        plan.columns()
        now = self._clock()

        def work(connection: Connection) -> Document:
            identity = transfer.write(
                connection, namespace, plan, now, conversation, cards, memories
            )
            return documents.found(connection, namespace, identity)

        return self._database.write(work)

    def scrub(self) -> bool:
        """Empty the write-ahead log, where old copies of deleted text may linger.

        Returns False where a reader or another kind of database stands in the way.
        """
        return self._database.scrub()

    # ------------------------------------------------------------ cards and regional memories

    def put_card(
        self, namespace: str, document_id: str, region: Region, key: str, card: MemoryCard
    ) -> None:
        """Keep a card under its `card_key` and attach it to the region of the document.

        A degraded card never takes the place of a good one.

        Raises:
            NotFoundError: the document was forgotten, or edited so that the region is gone.
        """
        self._database.write(put_card(namespace, document_id, region, key, card))

    def reuse_cards(
        self, namespace: str, document_id: str, wanted: Sequence[tuple[Region, str]]
    ) -> dict[int, MemoryCard]:
        """Attach the cards with these keys that are there; by region index.

        A region that is absent from the result, or whose card is `degraded`, is still to be read.
        """
        keys = {region.key: key for region, key in wanted}

        def work(connection: Connection) -> dict[str, MemoryCard]:
            number = documents.number_of(connection, namespace, document_id)
            return bodies.attach(connection, CARDS, namespace, number, keys)

        found = self._database.write(work)
        return {region.index: found[region.key] for region, _ in wanted if region.key in found}

    def cards(self, namespace: str, keys: Sequence[str]) -> dict[str, MemoryCard]:
        """The cards with these keys that are there, by key."""
        return self._database.read(lambda c: bodies.read(c, CARDS, namespace, keys))

    def put_memory(
        self,
        namespace: str,
        document_id: str,
        regions: Sequence[Region],
        key: str,
        memory: RegionalMemory,
    ) -> None:
        """Keep a regional memory under its `memory_key`; `regions` are those of its group."""
        self._database.write(put_memory(namespace, document_id, regions, key, memory))

    def reuse_memory(
        self, namespace: str, document_id: str, regions: Sequence[Region], key: str
    ) -> RegionalMemory | None:
        """Attach the regional memory with this key, if any, to the group of these regions."""
        content_key = group_key(regions)

        def work(connection: Connection) -> RegionalMemory | None:
            number = documents.number_of(connection, namespace, document_id)
            wanted = {content_key: key}
            found = bodies.attach(connection, MEMORIES, namespace, number, wanted)
            return found.get(content_key)

        return self._database.write(work)

    def memories(self, namespace: str, keys: Sequence[str]) -> dict[str, RegionalMemory]:
        """The regional memories with these keys that are there, by key."""
        return self._database.read(lambda c: bodies.read(c, MEMORIES, namespace, keys))

    # ------------------------------------------------------------ replies and calls

    def get_reply(self, namespace: str, key: str) -> str | None:
        """A reply that was paid for, or None."""
        return self._database.read(lambda c: history.get_reply(c, namespace, key))

    def put_reply(
        self, namespace: str, key: str, payload: str, document_ids: Sequence[str]
    ) -> bool:
        """Keep a reply until one of its documents is edited or forgotten.

        Returns False, and keeps nothing, where one of them is not in the namespace (any more).
        """
        return self._database.write(put_reply(namespace, key, payload, document_ids))

    def log_call(self, namespace: str, record: CallRecord) -> None:
        """Add one call to the history."""
        self._database.write(lambda c: history.log_call(c, namespace, record))

    def usage_history(self, namespace: str, since: str | None = None) -> list[UsageRow]:
        """Sums by day, role and model, oldest day first; `since` is an ISO 8601 date or time."""
        return self._database.read(lambda c: history.usage_history(c, namespace, since))


def _index(connection: Connection, namespace: str, document_id: str) -> DocumentIndex:
    document = documents.found(connection, namespace, document_id)
    number = documents.number_of(connection, namespace, document_id)
    return DocumentIndex(
        document,
        structure.read_regions(connection, number, document_id),
        structure.read_groups(connection, number),
        bodies.attached(connection, CARDS, number),
        bodies.attached(connection, MEMORIES, number),
    )


def _check_namespace(namespace: str) -> None:
    if not namespace.strip() or not namespace.isprintable():
        raise ConfigError(
            f"The namespace {namespace!r} cannot be used: give a name of printable characters."
        )
