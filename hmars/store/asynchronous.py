"""The store for an event loop: nothing blocks it, and nothing that was started is lost."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import Connection

from hmars.errors import HmarsError
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
from hmars.store.history import UsageRow
from hmars.store.plan import DocumentPlan
from hmars.store.store import ForgetReport, Store
from hmars.store.transfer import KeptBody, Transfer
from hmars.store.turns import StoredConversation
from hmars.store.writes import log_call, put_card, put_memory, put_reply

P = ParamSpec("P")
Result = TypeVar("Result")
Work = Callable[[Connection], Any]
READERS = 2
JOINED_AT_MOST = 256


class _Write:
    """A write that waits for its turn; `done` once a joint transaction has taken it along."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.done = False
        self.result: Any = None


class AsyncStore:
    """A `Store` whose methods are awaited. Usable from several loops at once.

    Writes run one after another on one thread. Small ones that wait at the same moment (replies,
    cards, calls of a wide fan-out) share one transaction, so the disk is waited for once. A
    cancelled await leaves promptly; its write still happens.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._writer = ThreadPoolExecutor(1, "hmars-store-write")
        self._readers = ThreadPoolExecutor(READERS, "hmars-store-read")
        self._waiting: deque[_Write] = deque()
        self._waiting_lock = threading.Lock()

    async def aclose(self) -> None:
        """Finish the writes that were started, then close the store."""
        await asyncio.shield(asyncio.to_thread(self._close))

    def _close(self) -> None:
        self._writer.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        self.store.close()

    async def __aenter__(self) -> AsyncStore:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.aclose()

    # ------------------------------------------------------------ how work is run

    async def _run(
        self,
        executor: ThreadPoolExecutor,
        work: Callable[P, Result],
        *args: P.args,
        **options: P.kwargs,
    ) -> Result:
        future = executor.submit(work, *args, **options)
        return await asyncio.shield(asyncio.wrap_future(future))

    async def run_write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` in a transaction; it may share one with other writes that wait.

        It is run again if a neighbour fails, so it must do nothing but write through the
        connection.
        """
        write = _Write(work)
        with self._waiting_lock:
            self._waiting.append(write)
        return await self._run(self._writer, self._finish, write)

    def _finish(self, write: _Write) -> Any:  # noqa: ANN401 - the type is that of the write
        """On the writing thread: write all that waits, or this one alone if that fails."""
        if not write.done:
            self._write_waiting()
        if not write.done:
            write.result = self.store.write(write.work)
        return write.result

    def _write_waiting(self) -> None:
        with self._waiting_lock:
            size = min(len(self._waiting), JOINED_AT_MOST)
            batch = [self._waiting.popleft() for _ in range(size)]
        if len(batch) < 2:
            return
        try:
            results = self.store.write(lambda c: [write.work(c) for write in batch])
        except HmarsError:
            return  # nothing was written; each is tried alone and meets its own error
        for write, result in zip(batch, results, strict=True):
            write.result, write.done = result, True

    # ------------------------------------------------------------ the methods of Store

    async def save_document(
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
        return await self._run(
            self._writer,
            self.store.save_document,
            namespace,
            source,
            regions,
            groups,
            tokenizer=tokenizer,
            tokens=tokens,
            settings=settings,
            conversation=conversation,
        )

    async def forget(
        self, namespace: str, document_id: str, remembered: frozenset[str] = frozenset()
    ) -> ForgetReport:
        return await self._run(self._writer, self.store.forget, namespace, document_id, remembered)

    async def reuse_cards(
        self, namespace: str, document_id: str, wanted: Sequence[tuple[Region, str]]
    ) -> dict[int, MemoryCard]:
        return await self._run(self._writer, self.store.reuse_cards, namespace, document_id, wanted)

    async def reuse_memory(
        self, namespace: str, document_id: str, regions: Sequence[Region], key: str
    ) -> RegionalMemory | None:
        return await self._run(
            self._writer, self.store.reuse_memory, namespace, document_id, regions, key
        )

    async def put_card(
        self, namespace: str, document_id: str, region: Region, key: str, card: MemoryCard
    ) -> None:
        await self.run_write(put_card(namespace, document_id, region, key, card))

    async def put_memory(
        self,
        namespace: str,
        document_id: str,
        regions: Sequence[Region],
        key: str,
        memory: RegionalMemory,
    ) -> None:
        await self.run_write(put_memory(namespace, document_id, regions, key, memory))

    async def document(self, namespace: str, ref: str) -> Document:
        return await self._run(self._readers, self.store.document, namespace, ref)

    async def documents(self, namespace: str) -> list[Document]:
        return await self._run(self._readers, self.store.documents, namespace)

    async def usage_history(self, namespace: str, since: str | None = None) -> list[UsageRow]:
        return await self._run(self._readers, self.store.usage_history, namespace, since)

    async def namespaces(self) -> list[str]:
        return await self._run(self._readers, self.store.namespaces)

    async def load_index(self, namespace: str, document_id: str) -> DocumentIndex:
        return await self._run(self._readers, self.store.load_index, namespace, document_id)

    async def load_dialogue(
        self, namespace: str, document_id: str
    ) -> tuple[DocumentIndex, StoredConversation | None]:
        return await self._run(self._readers, self.store.load_dialogue, namespace, document_id)

    async def conversation(
        self, namespace: str, source: str, *, with_turns: bool = True
    ) -> StoredConversation | None:
        return await self._run(
            self._readers, self.store.conversation, namespace, source, with_turns=with_turns
        )

    async def document_settings(self, namespace: str, document_id: str) -> Mapping[str, Any]:
        return await self._run(self._readers, self.store.document_settings, namespace, document_id)

    async def transfer(self, namespace: str, document_id: str) -> Transfer:
        return await self._run(self._readers, self.store.transfer, namespace, document_id)

    async def take_in(
        self,
        namespace: str,
        plan: DocumentPlan,
        conversation: StoredConversation | None,
        cards: Sequence[KeptBody],
        memories: Sequence[KeptBody],
    ) -> Document:
        return await self._run(
            self._writer, self.store.take_in, namespace, plan, conversation, cards, memories
        )

    async def scrub(self) -> bool:
        return await self._run(self._writer, self.store.scrub)

    async def pages(
        self, namespace: str, document_id: str, first: int = 1, last: int | None = None
    ) -> list[Page]:
        return await self._run(self._readers, self.store.pages, namespace, document_id, first, last)

    def reply_cache(self, namespace: str) -> NamespaceHistory:
        """The replies of one namespace, as `hmars.llm` wants them."""
        return NamespaceHistory(self, namespace)

    def call_log(self, namespace: str) -> NamespaceHistory:
        """The calls of one namespace, as `hmars.llm` wants them."""
        return NamespaceHistory(self, namespace)

    async def get_reply(self, namespace: str, key: str) -> str | None:
        return await self._run(self._readers, self.store.get_reply, namespace, key)

    async def put_reply(
        self, namespace: str, key: str, payload: str, document_ids: Sequence[str]
    ) -> bool:
        return await self.run_write(put_reply(namespace, key, payload, document_ids))

    async def log_call(self, namespace: str, record: CallRecord) -> None:
        await self.run_write(log_call(namespace, record))


@dataclass(frozen=True, slots=True)
class NamespaceHistory:
    """`ReplyCache` and `CallLog` of one namespace.

    On a read-only store it answers from what is there and keeps nothing: `Store.read_only` says
    so to whoever tells the user.
    """

    store: AsyncStore
    namespace: str

    async def get_reply(self, key: str) -> str | None:
        return await self.store.get_reply(self.namespace, key)

    async def put_reply(self, key: str, payload: str, documents: tuple[str, ...]) -> None:
        if not self.store.store.read_only:
            await self.store.put_reply(self.namespace, key, payload, documents)

    async def log_call(self, record: CallRecord) -> None:
        if not self.store.store.read_only:
            await self.store.log_call(self.namespace, record)
