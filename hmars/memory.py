"""The facade: one object that indexes texts, answers questions of them and proves the answers.

    async with Memory.open("memory.sqlite", profile="extractive") as memory:
        report = await memory.add(Path("contract.pdf"))
        answer = await memory.ask("When does the agreement end?", document=report.document)

Each `..._sync` method does the same without a running loop, and inside a notebook's loop as well:
it works on a loop of its own in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hmars.conversation import Backing, Conversation, Turnstile, open_conversation
from hmars.errors import ConfigError, NotFoundError
from hmars.indexing.estimate import Estimate, estimate_file
from hmars.indexing.family import index_agents
from hmars.indexing.pipeline import Indexer
from hmars.indexing.read import read_source
from hmars.indexing.sources import find_files
from hmars.llm.budget import Budget
from hmars.llm.pool import ModelPool
from hmars.llm.record import ToldLog
from hmars.model import (
    WAITING,
    Answer,
    CallRecord,
    Document,
    DocumentIndex,
    IndexReport,
    Page,
    Progress,
    SourceText,
)
from hmars.portable import export_document, import_document
from hmars.portal import Closing, Portal
from hmars.prompts import PromptLibrary
from hmars.query.asker import Asker, Call, Driver
from hmars.query.pipeline import timed
from hmars.scoping import Moment, as_of_question, load_scope
from hmars.settings import DEFAULT_PROFILE, PartitionSettings, Profile, load_profile
from hmars.store import AsyncStore, ForgetReport, Store, StoredConversation, UsageRow
from hmars.tokens import Tokenizer, load_tokenizer

if TYPE_CHECKING:  # the HTTP client takes seconds to import, and not every profile calls models
    from hmars.llm.probe import Finding

__all__ = ["Driver", "Estimate", "ForgetReport", "Memory", "find_files"]

OnProgress = Callable[[Progress], None]
OnText = Callable[[str], None]
Source = str | Path | SourceText


def _ignore(_: object) -> None:
    return None


class Memory(Closing):
    """Documents of one namespace of a store, asked through one profile. Make it with `open`."""

    def __init__(
        self,
        store: AsyncStore,
        profile: Profile,
        namespace: str,
        *,
        on_progress: OnProgress | None = None,
        on_warning: Callable[[str], None] = _ignore,
        on_call: Callable[[CallRecord], None] = _ignore,
    ) -> None:
        self.profile = profile
        self.namespace = namespace
        self._store = store
        self._on_progress = on_progress
        self._on_warning = on_warning
        self._prompts = PromptLibrary(profile.prompts.dir)
        self._tokenizer: Tokenizer | None = None
        self._pool = ModelPool(
            profile,
            store.reply_cache(namespace),
            ToldLog(store.call_log(namespace), on_call),
            on_warning,
            self._wait,
        )
        self._asker = Asker(profile, self._prompts)
        self._portal = Portal()
        self._turnstile = Turnstile()

    @classmethod
    def open(
        cls,
        store: str | Path,
        *,
        profile: str | Path | Profile = DEFAULT_PROFILE,
        namespace: str = "default",
        overrides: Sequence[str] = (),
        create: bool = True,
        on_progress: OnProgress | None = None,
        on_warning: Callable[[str], None] = _ignore,
        on_call: Callable[[CallRecord], None] = _ignore,
    ) -> Self:
        """Open or create a store.

        Args:
            store: path of a file, or a database URL.
            profile: name, TOML file, or a `Profile`.
            overrides: `key.path=value` changes to the profile.
            create: make the store where there is none; else that is an error.
            on_progress: called with each step of a long run.
            on_warning: called with things worth knowing that stop nothing.
            on_call: called with each finished call to a model; holds no text.

        Raises:
            ConfigError: the profile cannot work.
            StoreError: the store cannot be used; it is left untouched.
        """
        if not isinstance(profile, Profile):
            profile = load_profile(profile, overrides)
        elif overrides:
            raise ConfigError("Overrides need a profile's name or file, not a Profile object.")
        memory = cls(
            AsyncStore(Store.open(store, create=create)),
            profile,
            namespace,
            on_progress=on_progress,
            on_warning=on_warning,
            on_call=on_call,
        )
        memory._prompts.check()
        return memory

    # ------------------------------------------------------------ indexing

    async def add(
        self,
        source: Source,
        *,
        title: str | None = None,
        password: str | None = None,
        budget: Budget | None = None,
    ) -> IndexReport:
        """Index a file or a text; again after an edit, only what changed is read anew.

        Args:
            source: a path, a text, or a `SourceText`. A string is taken for a path where such a
                file exists or where it looks like one; anything else is text.
            title: shown in citations; by default the file's name or the text's first words.
            password: of an encrypted file.
            budget: what it may spend; the next run writes the cards that it did not reach.

        Raises:
            InputError, EmptyInputError: the file cannot be read, or holds nothing.
            EndpointError: no model call can succeed; what was written before stays.
        """
        began = time.perf_counter()
        text = await asyncio.to_thread(read_source, source, title=title, password=password)
        loaded = time.perf_counter()
        return await self._index(text, load_seconds=loaded - began, budget=budget)

    async def estimate(self, source: Source, *, password: str | None = None) -> Estimate:
        """What `add` and one question would take. Nothing is stored and nobody is called."""
        tokenizer = await self._load_tokenizer()
        history = await self.usage_history()
        return await asyncio.to_thread(
            estimate_file, source, password, self.profile, self._prompts, tokenizer, history
        )

    # ------------------------------------------------------------ asking

    async def ask(
        self,
        question: str,
        *,
        document: str | Sequence[str] | None = None,
        as_of: Moment | None = None,
        on_text: OnText | None = None,
        driver: Driver = "single",
        trajectory: Path | None = None,
        budget: Budget | None = None,
    ) -> Answer:
        """Answer from everything in the namespace, or from the documents named.

        Args:
            question: in words.
            document: id, unique start of an id, title or path; several are asked together.
            as_of: a time (a day means its end): of conversations, what was said later is not seen.
            on_text: called with each piece of the answer while it is written.
            driver: `single` asks every region once; `lead` asks in rounds, each query going by what
                was found before (S-PARSER), for questions of several hops.
            trajectory: a file to which the lead's rounds are added as one line of JSON.
            budget: what it may spend; regions it does not reach are *skipped* in the ledger.

        Raises:
            NotFoundError: no such document here.
            ConfigError: a document was indexed with another tokenizer than the profile's.
            ModelError: the answer could not be made at all.
        """
        began = time.perf_counter()
        if not question.strip():
            raise ConfigError("The question is empty.")
        if trajectory is not None and driver != "lead":
            raise ConfigError("Only the lead has a trajectory: ask with the driver 'lead'.")
        tokenizer = await self._load_tokenizer()
        scope = await load_scope(
            self._store, self.namespace, document, tokenizer, self.profile.name, as_of
        )
        models, usage = await self._pool.run(self._asker.roles(driver), budget, scope.tokens)
        if models is not None:
            question = as_of_question(question, as_of)
        call = Call(
            models,
            self._pool.workers(),
            driver,
            trajectory,
            usage,
            on_text,
            self._on_progress,
        )
        answer = await self._asker.ask(question, scope, tokenizer, call)
        return timed(answer, began)

    # ------------------------------------------------------------ looking and forgetting

    async def documents(self) -> list[Document]:
        """What is indexed in this namespace."""
        return list(await self._store.documents(self.namespace))

    async def hierarchy(self, document: str) -> DocumentIndex:
        """A document with its pages, regions, groups, cards and regional memories."""
        found = await self._store.document(self.namespace, document)
        return await self._store.load_index(self.namespace, found.id)

    async def page(self, document: str, index: int) -> Page:
        """One page with its exact text; pages are numbered from 1."""
        found = await self._store.document(self.namespace, document)
        pages = await self._store.pages(self.namespace, found.id, index, index)
        if not pages:
            raise NotFoundError(
                f"{found.title} has no page {index}: its pages are 1 to {found.pages}."
            )
        return pages[0]

    async def conversation(self, name: str, *, zone: str | None = None) -> Conversation:
        """A dialogue that grows; `zone` is that of times without an offset, by default UTC."""
        backing = Backing(
            self._store, self.namespace, self._index, self.ask, self._portal.run, self._turnstile
        )
        return await open_conversation(backing, name, zone)

    async def find_conversation(self, document: str) -> Conversation:
        """The conversation that is indexed as the document named (id, title or name)."""
        found = await self._store.document(self.namespace, document)
        return await self.conversation(found.source)

    async def export(self, document: str, file: Path) -> Document:
        """Write a document with all that was made of it to one file that `import_file` reads."""
        found = await self._store.document(self.namespace, document)
        return await export_document(self._store, self.namespace, found.id, file)

    async def import_file(self, file: Path) -> Document:
        """Take in a file that `export` wrote: no text is read again, so no model is called."""
        return await import_document(self._store, self.namespace, file)

    async def forget(self, document: str) -> ForgetReport:
        """Remove a document, what was written about it and the replies that hold its text."""
        found = await self._store.document(self.namespace, document)
        self._asker.forget(found.id)
        return await self._store.forget(self.namespace, found.id)

    async def usage_history(self, since: str | None = None) -> list[UsageRow]:
        """What models cost in this namespace by day, role and model; `since` is a day or time."""
        return await self._store.usage_history(self.namespace, since)

    async def doctor(self) -> list[Finding]:
        """Try every role's endpoint; empty where the profile has no models."""
        from hmars.llm.probe import probe

        return await probe(await self._pool.served())

    # ------------------------------------------------------------ without a loop

    def add_sync(
        self,
        source: Source,
        *,
        title: str | None = None,
        password: str | None = None,
        budget: Budget | None = None,
    ) -> IndexReport:
        """`add` for callers without a loop of their own."""
        return self._portal.run(
            lambda: self.add(source, title=title, password=password, budget=budget)
        )

    def ask_sync(
        self,
        question: str,
        *,
        document: str | Sequence[str] | None = None,
        as_of: Moment | None = None,
        on_text: OnText | None = None,
        driver: Driver = "single",
        trajectory: Path | None = None,
        budget: Budget | None = None,
    ) -> Answer:
        """`ask` for callers without a loop of their own."""
        return self._portal.run(
            lambda: self.ask(
                question,
                document=document,
                as_of=as_of,
                on_text=on_text,
                driver=driver,
                trajectory=trajectory,
                budget=budget,
            )
        )

    def conversation_sync(self, name: str, *, zone: str | None = None) -> Conversation:
        """`conversation` for callers without a loop of their own."""
        return self._portal.run(lambda: self.conversation(name, zone=zone))

    def documents_sync(self) -> list[Document]:
        """`documents` for callers without a loop of their own."""
        return self._portal.run(self.documents)

    def hierarchy_sync(self, document: str) -> DocumentIndex:
        """`hierarchy` for callers without a loop of their own."""
        return self._portal.run(lambda: self.hierarchy(document))

    def forget_sync(self, document: str) -> ForgetReport:
        """`forget` for callers without a loop of their own."""
        return self._portal.run(lambda: self.forget(document))

    # ------------------------------------------------------------ life

    async def close(self) -> None:
        """Close connections and the store. Safe to call twice."""
        await self._pool.close_loop()
        await asyncio.to_thread(self._portal.close, self._pool.close_loop)
        await asyncio.to_thread(self._pool.close_engines)
        await self._store.aclose()

    def close_sync(self) -> None:
        """`close` for callers without a loop of their own."""
        self._portal.run(self._store.aclose)
        self._portal.close(self._pool.close_loop)
        self._pool.close_engines()

    # ------------------------------------------------------------ inside

    async def _index(
        self,
        text: SourceText,
        *,
        load_seconds: float = 0.0,
        conversation: StoredConversation | None = None,
        settings: PartitionSettings | None = None,
        on_saved: Callable[[], Awaitable[None]] | None = None,
        keep_attached: bool = False,
        budget: Budget | None = None,
    ) -> IndexReport:
        """See `Indexer.index`; `settings` stand in for the profile's."""
        tokenizer = await self._load_tokenizer()
        models, usage = await self._pool.run(("card", "region"), budget)
        indexer = Indexer(
            store=self._store,
            namespace=self.namespace,
            tokenizer=tokenizer,
            settings=settings or self.profile.partition,
            workers=self._pool.workers(),
            usage=usage,
            on_progress=self._on_progress,
        )
        return await indexer.index(
            text,
            lambda document: index_agents(self.profile, models, self._prompts, tokenizer, document),
            load_seconds=load_seconds,
            conversation=conversation,
            on_saved=on_saved,
            keep_attached=keep_attached,
        )

    def _wait(self, note: str) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(WAITING, 0, 0, note))

    async def _load_tokenizer(self) -> Tokenizer:
        if self._tokenizer is None:
            self._tokenizer = await asyncio.to_thread(load_tokenizer, self.profile.tokenizer)
        return self._tokenizer
