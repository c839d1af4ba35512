"""A conversation: a document that grows by turns, is asked as of a time, and can forget.

    conversation = await memory.conversation("ana", zone="Europe/Lisbon")
    await conversation.append([{"speaker": "Ana", "text": "The key is in the red box."}])
    answer = await conversation.ask("Where is the key?", as_of="2024-04-02")

Appending takes turns in as `hmars.indexing.turns.merge` says, lays the whole out anew and stores
the difference: only the region that grew, what follows it, and its group are read again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from hmars.errors import ConfigError, NotFoundError
from hmars.indexing.turns import (
    MergeResult,
    Turn,
    TurnFile,
    TurnFormat,
    forget_turns,
    make_turns,
    merge,
    read_moment,
    read_turns,
    render,
)
from hmars.indexing.turns.keep import forgotten_key, stored, turns_of
from hmars.indexing.turns.times import find_zone
from hmars.llm.budget import Budget
from hmars.model import Answer, Frozen, IndexReport, SourceText
from hmars.query.asker import Driver
from hmars.scoping import Moment
from hmars.settings import PartitionSettings
from hmars.store import AsyncStore, Overtaken, StoredConversation

Turns = Path | bytes | Sequence[Turn | Mapping[str, Any]]
Result = TypeVar("Result")
TRIES = 40
"""How often a change is begun anew because somebody else changed the conversation meanwhile."""


class AppendReport(Frozen):
    """What became of the turns that were to be appended. `append --json` prints exactly this."""

    conversation: str
    document: str
    turns: int
    """All turns of the conversation now."""
    added: int = 0
    replaced: int = 0
    """Edited: same id, speaker and time, another text."""
    duplicates: int = 0
    out_of_order: int = 0
    """Of the added: earlier than a turn that had come before."""
    renamed: int = 0
    """Of the added: their id was taken by another turn."""
    ambiguous: int = 0
    """Of the duplicates: without time and id, so the same words may have been said again."""
    time_differs: int = 0
    """Of the duplicates: read with another zone or order of day and month; the first holds."""
    forgotten: int = 0
    """Left out, as they were forgotten before."""
    left_out: int = 0
    """Entries of the file that are no turns; the warnings say why."""
    format: TurnFormat
    warnings: tuple[str, ...] = ()
    index: IndexReport


class TurnsForgotten(Frozen):
    """What `Conversation.forget` did. `forget --turn --json` prints exactly this."""

    conversation: str
    document: str | None
    """None where no turn is left, so that the document went as well."""
    turns: int
    left: int
    scrubbed: bool
    """False: somebody was reading, so old bytes stay in the write-ahead log until that ends."""
    index: IndexReport | None = None
    """What was written anew of the regions that had held the turns; None: nothing, or others do."""


class IndexText(Protocol):
    async def __call__(
        self,
        text: SourceText,
        *,
        load_seconds: float = 0.0,
        conversation: StoredConversation | None = None,
        settings: PartitionSettings | None = None,
        on_saved: Callable[[], Awaitable[None]] | None = None,
        keep_attached: bool = False,
    ) -> IndexReport: ...


class AskText(Protocol):
    async def __call__(
        self,
        question: str,
        *,
        document: str | Sequence[str] | None = None,
        as_of: Moment | None = None,
        on_text: Callable[[str], None] | None = None,
        driver: Driver = "single",
        budget: Budget | None = None,
    ) -> Answer: ...


@dataclass
class Turnstile:
    """One change of a conversation at a time on one loop: the next finds what the last wrote."""

    _locks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = field(
        default_factory=WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]]
    )

    def of(self, name: str) -> AbstractAsyncContextManager[None]:
        locks = self._locks.setdefault(asyncio.get_running_loop(), {})
        return locks.setdefault(name, asyncio.Lock())


@dataclass(frozen=True)
class Backing:
    """What a conversation needs of the memory it belongs to."""

    store: AsyncStore
    namespace: str
    index: IndexText
    ask: AskText
    run: Callable[[Callable[[], Awaitable[Any]]], Any]
    turnstile: Turnstile


class Conversation:
    """A growing dialogue in a memory. Made by `Memory.conversation`; holds no turns itself."""

    def __init__(self, backing: Backing, name: str, zone: str | None = None) -> None:
        self.name = name
        self._backing = backing
        self._zone = zone

    async def append(
        self,
        turns: Turns,
        *,
        format: TurnFormat | None = None,
        date_order: Any = None,  # noqa: ANN401 - checked by the reader
        name: str | None = None,
    ) -> AppendReport:
        """Take in turns, in any order and any number of times, and index what is new.

        Args:
            turns: a file or folder of any format in docs/dialogues.md, its bytes, or a list of
                `Turn` objects or of mappings with `speaker` or `role`, and `text`.
            format: of a file; None finds it from the content.
            date_order: of a WhatsApp text: "dmy", "mdy" or "ymd".
            name: what to call the input in messages.

        Raises:
            InputError, EmptyInputError: nothing that could be read.
            ConfigError: the zone is not that of the turns that are there.
            EndpointError: no model call can succeed; the turns are stored all the same.
        """
        began = time.perf_counter()
        zone = self._declared(await self._state(with_turns=False))

        def read() -> TurnFile:
            if isinstance(turns, Path | bytes):
                return read_turns(turns, name=name, zone=zone, format=format, date_order=date_order)
            return make_turns(turns, name=name or "The turns", zone=zone)

        file = await asyncio.to_thread(read)
        seconds = time.perf_counter() - began

        return await self._change(lambda state: self._take(file, state, zone, seconds))

    async def _take(
        self, file: TurnFile, state: StoredConversation, zone: str | None, seconds: float
    ) -> AppendReport:
        def work() -> tuple[MergeResult, SourceText, StoredConversation]:
            kept = [turn for turn in file.turns if forgotten_key(turn) not in state.forgotten]
            result = merge(turns_of(state), kept)
            source = render(result.turns, conversation=self.name, zone=zone).source
            return result, source, StoredConversation(stored(result.turns), zone, state.base)

        result, source, wanted = await asyncio.to_thread(work)
        if not result.turns:
            raise ConfigError(
                f"All {len(file.turns)} turns were forgotten before, so '{self.name}' stays empty; "
                "to begin anew, choose another name."
            )
        report = await self._backing.index(source, conversation=wanted, load_seconds=seconds)
        return AppendReport(
            conversation=self.name,
            document=report.document,
            turns=len(result.turns),
            added=len(result.added),
            replaced=len(result.replaced),
            duplicates=result.duplicates,
            out_of_order=len(result.out_of_order),
            renamed=len(result.renamed),
            ambiguous=result.ambiguous,
            time_differs=result.time_differs,
            forgotten=sum(forgotten_key(turn) in state.forgotten for turn in file.turns),
            left_out=file.left_out,
            format=file.format,
            warnings=file.warnings,
            index=report,
        )

    async def turns(self) -> tuple[Turn, ...]:
        """All turns in their order of time."""
        return turns_of(await self._state())

    async def ask(
        self,
        question: str,
        *,
        as_of: Moment | None = None,
        on_text: Callable[[str], None] | None = None,
        driver: Driver = "single",
        budget: Budget | None = None,
    ) -> Answer:
        """As `Memory.ask`, of this conversation.

        Args:
            as_of: a time; nothing said later is seen. A day means its end, and a time without an
                offset is one of the conversation's zone.

        Raises:
            NotFoundError: nothing was appended yet.
        """
        document = (await self._state(with_turns=False)).document
        if document is None:
            raise NotFoundError(f"The conversation '{self.name}' has no turns yet.")
        return await self._backing.ask(
            question,
            document=document,
            as_of=as_of,
            on_text=on_text,
            driver=driver,
            budget=budget,
        )

    async def forget(
        self, ids: Collection[str] = (), *, before: Moment | None = None
    ) -> TurnsForgotten:
        """Remove turns for good, by id, or all that was said before a time.

        Their text and all that was made of it (cards, regional memories, cached replies) are gone
        in one transaction and overwritten in the file; then the regions that had held them are
        read anew. A digest keeps them from coming back with an old export.

        Raises:
            NotFoundError: no such turn; nothing is forgotten then.
        """
        if not ids and before is None:
            raise ConfigError("Say which turns to forget: their ids, or a time.")

        return await self._change(lambda state: self._forget(state, ids, before))

    async def _forget(
        self, state: StoredConversation, ids: Collection[str], before: Moment | None
    ) -> TurnsForgotten:
        if state.document is None:
            raise NotFoundError(f"The conversation '{self.name}' has no turns yet.")
        store, namespace, document = self._backing.store, self._backing.namespace, state.document
        turns = turns_of(state)
        left = forget_turns(turns, ids=ids, before=_moment(before, state.zone))
        kept_ids = {turn.id for turn in left}
        gone = [turn for turn in turns if turn.id not in kept_ids]
        keys = frozenset(map(forgotten_key, gone))

        def report(scrubbed: bool, index: IndexReport | None = None) -> TurnsForgotten:
            return TurnsForgotten(
                conversation=self.name,
                document=document if left else None,
                turns=len(gone),
                left=len(left),
                scrubbed=scrubbed,
                index=index,
            )

        if not gone:
            return report(scrubbed=True)
        if not left:
            return report((await store.forget(namespace, document, keys)).scrubbed)
        settings = await store.document_settings(namespace, document)
        scrubs: list[bool] = []

        async def scrub() -> None:
            scrubs.append(await store.scrub())

        try:
            index = await self._backing.index(
                render(left, conversation=self.name, zone=state.zone).source,
                conversation=replace(state, turns=stored(left), forgotten=keys),
                settings=PartitionSettings.model_validate(settings),
                on_saved=scrub,
                keep_attached=True,
            )
        except NotFoundError:
            if not scrubs:
                raise
            index = None  # forgotten; whoever changed the conversation since reads what is left
        return report(scrubs[0], index)

    async def _change(self, change: Callable[[StoredConversation], Awaitable[Result]]) -> Result:
        """Make a change from what is there now; anew if somebody else was faster."""
        async with self._backing.turnstile.of(self.name):
            for _ in range(TRIES):
                state = await self._state()
                try:
                    return await change(state)
                except Overtaken:
                    continue
                except NotFoundError:
                    # A region was edited or forgotten while its card was being written.
                    if (await self._state(with_turns=False)).base == state.base:
                        raise
            raise Overtaken(
                f"The conversation '{self.name}' is being changed by others all the time: "
                "run this again later."
            )

    async def _state(self, *, with_turns: bool = True) -> StoredConversation:
        store, namespace = self._backing.store, self._backing.namespace
        found = await store.conversation(namespace, self.name, with_turns=with_turns)
        return found or StoredConversation()

    def _declared(self, state: StoredConversation) -> str | None:
        if self._zone is None:
            return state.zone
        if state.zone is not None and state.zone != self._zone:
            raise ConfigError(
                f"The conversation '{self.name}' has the zone {state.zone}, not {self._zone}: "
                "its turns were read with it. Leave the zone out, or choose another name."
            )
        return self._zone

    # ------------------------------------------------------------ without a loop

    def append_sync(self, turns: Turns, *, format: TurnFormat | None = None) -> AppendReport:
        """`append` for callers without a loop of their own."""
        return self._backing.run(lambda: self.append(turns, format=format))

    def ask_sync(
        self,
        question: str,
        *,
        as_of: Moment | None = None,
        driver: Driver = "single",
        budget: Budget | None = None,
    ) -> Answer:
        """`ask` for callers without a loop of their own."""
        return self._backing.run(
            lambda: self.ask(question, as_of=as_of, driver=driver, budget=budget)
        )

    def forget_sync(
        self, ids: Collection[str] = (), *, before: Moment | None = None
    ) -> TurnsForgotten:
        """`forget` for callers without a loop of their own."""
        return self._backing.run(lambda: self.forget(ids, before=before))


async def open_conversation(backing: Backing, name: str, zone: str | None) -> Conversation:
    """The conversation of this name; it need not have turns yet.

    Raises:
        ConfigError: the name belongs to a document, or cannot be used; no such zone; another zone
            than the one its turns were read with.
    """
    if not name.strip() or not name.isprintable():
        raise ConfigError(f"The conversation name {name!r} cannot be used: use printable letters.")
    if zone is not None:
        find_zone(zone)
    conversation = Conversation(backing, name, zone)
    conversation._declared(await conversation._state(with_turns=False))  # pyright: ignore[reportPrivateUsage]
    return conversation


def _moment(moment: Moment | None, zone: str | None) -> datetime | None:
    return read_moment(moment, zone) if isinstance(moment, str) else moment
