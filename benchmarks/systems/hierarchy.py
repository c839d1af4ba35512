"""hmars itself, its ablations (S-HMARS 4.5) and its lead (S-PARSER)."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from benchmarks.bench import Bench, Outcome, Passed, Spending
from benchmarks.suites.base import BenchDocument
from hmars.errors import ConfigError
from hmars.memory import Memory
from hmars.model import Answer, DocumentIndex, Group, MemoryCard, Region, Usage
from hmars.prompts import PromptLibrary
from hmars.query.agents import (
    Broadcast,
    Broadcaster,
    Draft,
    EvidenceBlock,
    Guidance,
    OnText,
    QueryAgents,
    RegionSelection,
    Scope,
    Selector,
)
from hmars.query.extractive import ExtractiveMemory
from hmars.query.family import model_query_agents
from hmars.query.pipeline import AskSettings, ask
from hmars.settings import Profile

Variant = Literal["single", "dispatched", "no-mid", "lead", "parser"]
WORKERS = 16
NOT_BUILT = "Build the system on a document before asking it."


@dataclass(frozen=True)
class QuestionOnly:
    """No mid-agent: every region gets the bare question."""

    async def broadcast(self, question: str, index: DocumentIndex, group: Group) -> Broadcast:
        del index, group
        return Broadcast(interpretation=question)


@dataclass(frozen=True)
class OnlyDispatched:
    """Only regions that a mid-agent has a hint of its own for take part."""

    inner: Selector

    async def select(
        self, question: str, region: Region, card: MemoryCard | None, guidance: Guidance
    ) -> RegionSelection:
        if guidance.hint == guidance.interpretation:
            return RegionSelection()
        return await self.inner.select(question, region, card, guidance)


class Remembering:
    """Asks a region once for each question, however many budgets the evidence is fitted to."""

    def __init__(self, inner: Selector) -> None:
        self._inner = inner
        self._question = ""
        self._known: dict[tuple[str, int], RegionSelection] = {}

    async def select(
        self, question: str, region: Region, card: MemoryCard | None, guidance: Guidance
    ) -> RegionSelection:
        if question != self._question:
            self._question = question
            self._known = {}
        key = (region.document, region.index)
        if key not in self._known:
            self._known[key] = await self._inner.select(question, region, card, guidance)
        return self._known[key]


class RememberingBroadcaster:
    """The same for mid-agents."""

    def __init__(self, inner: Broadcaster) -> None:
        self._inner = inner
        self._question = ""
        self._known: dict[tuple[str, int], Broadcast] = {}

    async def broadcast(self, question: str, index: DocumentIndex, group: Group) -> Broadcast:
        if question != self._question:
            self._question = question
            self._known = {}
        key = (index.document.id, group.index)
        if key not in self._known:
            self._known[key] = await self._inner.broadcast(question, index, group)
        return self._known[key]


@dataclass(frozen=True)
class NoAnswer:
    """Stands for the answer model where only evidence is looked at."""

    async def answer(
        self, question: str, evidence: Sequence[EvidenceBlock], on_text: OnText | None = None
    ) -> Draft:
        del question, evidence, on_text
        return Draft("", abstained=True)


class HmarsSystem:
    """One variant. A document is indexed once for all of them, each asks a copy of its own.

    Replies are kept in a copy, so no variant is free because another asked the same before it.
    """

    def __init__(self, bench: Bench, variant: Variant = "single", mode: str | None = None) -> None:
        self._bench = bench
        self._variant: Variant = variant
        self._name = f"{variant}-{mode}" if mode else variant
        self._profile = changed(bench.profile, variant, mode)
        self._open: Memory | None = None
        self._extractive = ExtractiveMemory()
        self._document = ""
        self._scope: Scope | None = None
        self._remembered: QueryAgents | None = None

    async def build(self, document: BenchDocument) -> Mapping[str, Usage]:
        await self.close()
        name = hashlib.sha256(document.id.encode()).hexdigest()[:16]
        folder = self._bench.folder / "stores" / name
        folder.mkdir(parents=True, exist_ok=True)
        # PARSER has no index: its hierarchy is written without models and never looked at.
        plain = self._variant == "parser"
        index = folder / ("plain.sqlite" if plain else "index.sqlite")
        profile = self._profile.model_copy(update={"agents": "extractive"} if plain else {})
        usage: Mapping[str, Usage] = {}
        done = index.with_suffix(".done")
        told = self._bench.log.add if self._bench.log else _untold
        async with self._bench.alone(index):
            if not done.exists():
                async with Memory.open(index, profile=profile, on_call=told) as memory:
                    report = await memory.add(document.source())
                usage = report.usage
                done.write_text(report.document, encoding="utf-8")
        own = folder / f"{self._name}.sqlite"
        if not own.exists():
            await asyncio.to_thread(copy_store, index, own)
        self._open = Memory.open(own, profile=self._profile, create=False, on_call=told)
        self._document = done.read_text(encoding="utf-8")
        self._scope = Scope((await self._open.hierarchy(self._document),))
        return usage

    async def ask(self, question: str) -> Outcome:
        if self._variant in ("lead", "parser"):
            answer = await self._memory.ask(question, document=self._document, driver="lead")
        elif self._variant == "single":
            answer = await self._memory.ask(question, document=self._document)
        else:
            spending = self._bench.spending()
            agents = self._agents(spending)
            answer = await self._ask(question, agents, self._profile.answer.max_prompt_tokens)
            answer = answer.model_copy(update={"usage": spending.usage})
        return outcome_of(answer)

    async def retrieve(self, question: str, budget: int) -> Outcome:
        """The evidence alone. Regions are asked once for all budgets of a question."""
        spending = self._bench.spending()
        if self._remembered is None:
            agents = self._agents(spending)
            self._remembered = replace(
                agents,
                broadcaster=RememberingBroadcaster(agents.broadcaster),
                selector=Remembering(agents.selector),
                answerer=NoAnswer(),
            )
        answer = await self._ask(question, self._remembered, budget)
        return replace(outcome_of(answer), text="", usage=spending.usage)

    async def close(self) -> None:
        """Let go of the document: texts of a suite are large."""
        if self._open is not None:
            await self._open.close()
            self._open = None
            self._extractive.forget(self._document)
        self._scope = None
        self._remembered = None

    @property
    def _memory(self) -> Memory:
        if self._open is None:
            raise ConfigError(NOT_BUILT)
        return self._open

    async def _ask(self, question: str, agents: QueryAgents, budget: int) -> Answer:
        settings = AskSettings(
            max_evidence_tokens=budget,
            read_all_below=self._profile.query.read_all_below,
            workers=WORKERS,
        )
        return await ask(question, self._scoped(), agents, settings, self._bench.tokenizer)

    def _scoped(self) -> Scope:
        if self._scope is None:
            raise ConfigError(NOT_BUILT)
        return self._scope

    def _agents(self, spending: Spending) -> QueryAgents:
        scope = self._scoped()
        if self._profile.agents == "extractive":
            agents = self._extractive.agents(scope, self._bench.tokenizer)
        else:
            library = PromptLibrary(self._profile.prompts.dir)
            agents = model_query_agents(
                self._profile,
                spending.model,
                library,
                self._bench.tokenizer,
                scope,
                partial(self._extractive.index, scope, self._bench.tokenizer),
            )
        if self._variant == "no-mid":
            return replace(agents, broadcaster=QuestionOnly())
        if self._variant == "dispatched":
            return replace(agents, selector=OnlyDispatched(agents.selector))
        return agents


def _untold(_: object) -> None:
    return None


def copy_store(source: Path, target: Path) -> None:
    """All of a store or nothing of it."""
    unfinished = target.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(unfinished)) as written:
        read.backup(written)
    unfinished.replace(target)


def outcome_of(answer: Answer) -> Outcome:
    """An answer of hmars in the terms of the comparison."""
    ledger = answer.ledger
    notes = list(ledger.notes)
    if ledger.failed:
        notes.append(f"{ledger.failed} of {ledger.regions} regions failed")
    if ledger.pages_left_out:
        notes.append(f"{ledger.pages_left_out} selected pages left out of the budget")
    return Outcome(
        text=answer.answer,
        evidence=tuple(
            Passed(span.start, span.end, span.tokens, span.confidence) for span in answer.evidence
        ),
        usage=answer.usage,
        seconds=answer.seconds.total,
        abstained=answer.abstained,
        notes=tuple(notes),
    )


def changed(profile: Profile, variant: Variant, mode: str | None) -> Profile:
    """The profile as a variant needs it.

    Raises:
        ConfigError: the installed hmars has no such mode.
    """
    changes: dict[str, Any] = {}
    if mode is not None:
        changes["select"] = {**profile.select.model_dump(), "mode": mode}
    if variant == "parser":
        lead = {"hints": False, "share_facts": False, "verify": False, "answer_from": "lead"}
        changes["lead"] = {**profile.lead.model_dump(), **lead}
    if not changes:
        return profile
    try:
        return Profile.model_validate({**profile.model_dump(), **changes})
    except ValidationError as error:
        raise ConfigError(f"This hmars cannot run {variant} {mode or ''}: {error}.") from None
