"""Runs systems over a suite, question by question, and picks up where a killed run stopped."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from benchmarks import metrics, suites, systems
from benchmarks.bench import Bench, Outcome, Retriever, System
from benchmarks.embeddings import Embedder, make_embedder
from benchmarks.records import (
    Lines,
    QuestionLog,
    Record,
    RunFolder,
    RunReplies,
    SystemLog,
    commit,
    now,
    profile_values,
    prompt_hashes,
)
from benchmarks.scoring import Scores, answer_scores, evidence_scores, judged, role_sizes
from benchmarks.suites.base import BenchDocument, Bundle, Case, Options
from hmars.coverage import Span
from hmars.errors import CallFailed
from hmars.fanout import fan_out
from hmars.llm.pool import ModelPool
from hmars.llm.stack import ModelStack
from hmars.model import Usage
from hmars.settings import Profile
from hmars.store import AsyncStore, Store
from hmars.tokens import load_tokenizer

BUDGETS = (4_000, 8_000, 13_000, 20_000)
_PATH = re.compile(r"^(|[^/=\s]+=)/(?:[^/]*/)*([^/]*)$")
"""A word of a command that is a path from the root, or a setting of one: KEY=PATH."""


@dataclass(frozen=True)
class RunSettings:
    """One run as asked for on the command line."""

    suite: str
    systems: tuple[str, ...]
    profile: Profile
    out: Path
    options: Options
    resume: bool = False
    retrieval_only: bool = False
    budgets: tuple[int, ...] = BUDGETS
    embeddings: str | None = None
    at_once: int = 1
    """Systems asked side by side, which servers that batch need to be busy; seconds then say what
    a question takes beside the others."""
    parameters: Mapping[str, float] = field(default_factory=dict[str, float])
    """Sizes of models whose names do not say them, for FLOPs."""


async def run(settings: RunSettings, embedder: Embedder | None = None) -> RunFolder:
    """Ask every question of every system that has no record yet.

    `embedder` stands in for the one that the settings name.

    A question whose call failed is recorded with the error, unscored, and asked again on resume.

    Raises:
        ConfigError: suite, system, profile or folder cannot be used.
        EndpointError: no call can succeed; what was recorded stays.
    """
    if embedder is None and settings.embeddings:
        embedder = make_embedder(settings.embeddings)
    folder = RunFolder(settings.out)
    tokenizer = load_tokenizer(settings.profile.tokenizer)
    folder.begin(_manifest(settings, tokenizer.identity), resume=settings.resume)
    async with AsyncExitStack() as closing:
        profile = await _served(settings.profile, closing)
        replies = await closing.enter_async_context(
            AsyncStore(Store.open(folder.path / "replies.sqlite"))
        )
        log = QuestionLog(folder.path / "calls.jsonl")
        contenders: list[_Contender] = []
        makers: dict[Path, asyncio.Lock] = {}
        for name in settings.systems:
            stack = None
            if profile.agents == "model":
                # Kept replies are each system's own: none is free because another asked before.
                kept = RunReplies(replies.reply_cache(name))
                stack = await closing.enter_async_context(
                    ModelStack(profile, cache=kept, warn=_say)
                )
            work = folder.path / "work"
            own = log.of(name)
            bench = Bench(profile, tokenizer, work, stack, embedder, own, makers)
            if settings.retrieval_only:
                retriever = systems.make_retriever(name, bench)
                contenders.append(_Retrieving(name, retriever, own, settings.budgets))
            else:
                contenders.append(_Answering(name, systems.make(name, bench), own, bench))
            closing.push_async_callback(contenders[-1].close)
        await _Run(settings, folder, contenders).all()
    return folder


async def _served(profile: Profile, closing: AsyncExitStack) -> Profile:
    """Embedded engines are started once: all systems ask the same ones, by their addresses."""
    if profile.agents == "extractive":
        return profile
    pool = ModelPool(profile, cache=None, log=None, warn=_say)
    closing.push_async_callback(asyncio.to_thread, pool.close_engines)
    return await pool.served()


Found = tuple[Outcome, Scores, Record]
"""What came of a question, what it scored, and further fields of its record."""


class _Contender(Protocol):
    name: str
    log: SystemLog

    async def build(self, document: BenchDocument) -> Mapping[str, Usage]: ...

    async def take(self, document: BenchDocument, case: Case) -> Found: ...

    async def close(self) -> None: ...


class _Answering:
    """Asks for answers and scores them."""

    def __init__(self, name: str, system: System, log: SystemLog, bench: Bench) -> None:
        self.name = name
        self.log = log
        self._system = system
        self._bench = bench
        self.build = system.build
        self.close = system.close

    async def take(self, document: BenchDocument, case: Case) -> Found:
        outcome = await self._system.ask(case.question)
        evidence = evidence_scores(document.text, case, _spans(outcome))
        verdict, why, cost = await judged(self._bench, case, outcome)
        more: Record = {"judge": why, "judge_usage": _dumped(cost)} if why else {}
        return outcome, evidence | answer_scores(case, outcome) | verdict, more


class _Retrieving:
    """Scores evidence at each budget; the outcome is that of the largest."""

    def __init__(
        self, name: str, system: Retriever, log: SystemLog, budgets: Sequence[int]
    ) -> None:
        self.name = name
        self.log = log
        self._system = system
        self._budgets = sorted(budgets)
        self.build = system.build
        self.close = system.close

    async def take(self, document: BenchDocument, case: Case) -> Found:
        scores: Scores = {}
        outcome = Outcome("", ())
        seconds = 0.0
        for budget in self._budgets:
            outcome = await self._system.retrieve(case.question, budget)
            seconds += outcome.seconds
            at = evidence_scores(document.text, case, _spans(outcome))
            at["tokens"] = float(outcome.evidence_tokens)
            scores.update({f"{key}@{budget}": value for key, value in at.items()})
        return outcome, scores, {"seconds": round(seconds / len(self._budgets), 4)}


class _Run:
    def __init__(
        self,
        settings: RunSettings,
        folder: RunFolder,
        contenders: Sequence[_Contender],
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._contenders = contenders
        self._lines = Lines(folder.records)
        self._done = {
            (record["system"], record["case"])
            for record in self._lines.read()
            if not record.get("error")
        }
        self._sizes = role_sizes(settings.profile, settings.parameters)
        self._began = time.monotonic()
        self._asked = 0

    async def all(self) -> None:
        documents: dict[str, str] = {}
        cases = 0
        for bundle in suites.load(self._settings.suite, self._settings.options):
            documents[bundle.document.id] = self._folder.keep(bundle.document)
            cases += len(bundle.cases)
            await fan_out(
                self._contenders,
                partial(self._bundle, bundle=bundle),
                workers=self._settings.at_once,
            )
        self._folder.finish(documents, cases)

    async def _bundle(self, contender: _Contender, bundle: Bundle) -> None:
        name = contender.name
        waiting = [case for case in bundle.cases if (name, case.id) not in self._done]
        if not waiting:
            return
        document = bundle.document
        earlier = contender.log.begin(f"build {document.id}")
        began = time.perf_counter()
        try:
            usage = _joined(earlier, await contender.build(document))
        except CallFailed as error:
            return self._unbuilt(contender, bundle, waiting, error, earlier)
        seconds = time.perf_counter() - began
        for number, case in enumerate(waiting):
            record = await self._case(contender, document, case)
            if number == 0:
                record["build_usage"] = _dumped(usage)
                record["build_seconds"] = round(seconds, 4)
            self._lines.add(record)
            self._asked += 1
        pace = (time.monotonic() - self._began) / max(1, self._asked)
        _say(
            f"{self._settings.suite}: {name}: {len(waiting)} questions on {document.id} "
            f"({self._asked} asked, {pace:.2f} s each)"
        )

    def _unbuilt(
        self,
        contender: _Contender,
        bundle: Bundle,
        waiting: Sequence[Case],
        error: CallFailed,
        earlier: Mapping[str, Usage],
    ) -> None:
        """Every question on this document failed, for this system alone."""
        spent = _dumped(_joined(earlier, {error.role: error.usage or Usage()}))
        for number, case in enumerate(waiting):
            head = _head(self._settings.suite, contender.name, bundle.document, case)
            cost = {"build_usage": spent} if number == 0 else {}
            self._lines.add({**head, "error": str(error), "scores": {}, "usage": {}, **cost})
        _say(f"{contender.name} could not be built on {bundle.document.id}: {error}")

    async def _case(self, contender: _Contender, document: BenchDocument, case: Case) -> Record:
        earlier = contender.log.begin(case.id)
        record = _head(self._settings.suite, contender.name, document, case)
        try:
            outcome, scores, more = await contender.take(document, case)
        except CallFailed as error:
            failed = {error.role: error.usage or Usage()}
            return {
                **record,
                "error": str(error),
                "scores": {},
                "usage": _dumped(_joined(earlier, failed)),
            }
        usage = _joined(earlier, outcome.usage)
        answer = usage.get("answer")
        return {
            **record,
            "answer": outcome.text,
            "abstained": outcome.abstained,
            "evidence": None
            if outcome.evidence is None
            else [[part.start, part.end, part.tokens, part.score] for part in outcome.evidence],
            "evidence_tokens": outcome.evidence_tokens,
            "prompt_tokens": answer.prompt_tokens if answer else outcome.evidence_tokens,
            "usage": _dumped(usage),
            "flops": metrics.flops(usage, self._sizes) if usage else None,
            "seconds": round(outcome.seconds, 4),
            "notes": list(outcome.notes),
            "scores": scores,
            **more,
        }


def _spans(outcome: Outcome) -> Sequence[Span] | None:
    if outcome.evidence is None:
        return None
    return [(part.start, part.end) for part in outcome.evidence]


def _head(suite: str, name: str, document: BenchDocument, case: Case) -> Record:
    return {
        "suite": suite,
        "system": name,
        "case": case.id,
        "set": case.set,
        "kind": case.kind,
        "labels": dict(case.labels),
        "document": document.id,
        "question": case.question,
        "answers": list(case.answers),
        "scoring": case.scoring,
        "gold": [list(unit.places) for unit in case.gold],
    }


def _joined(first: Mapping[str, Usage], second: Mapping[str, Usage]) -> dict[str, Usage]:
    roles = dict.fromkeys((*first, *second))
    return {role: first.get(role, Usage()) + second.get(role, Usage()) for role in roles}


def _dumped(usage: Mapping[str, Usage]) -> Record:
    return {
        role: spent.model_dump(exclude_defaults=True)
        for role, spent in usage.items()
        if spent != Usage()
    }


def _manifest(settings: RunSettings, tokenizer: str) -> Mapping[str, Any]:
    options = settings.options
    return {
        "suite": settings.suite,
        "systems": list(settings.systems),
        "commit": commit(),
        "profile": profile_values(settings.profile),
        "models": {role: found.model for role, found in settings.profile.roles.items()},
        "prompts": prompt_hashes(settings.profile),
        "tokenizer": tokenizer,
        "embeddings": settings.embeddings,
        "at_once": settings.at_once,
        "budgets": list(settings.budgets) if settings.retrieval_only else None,
        "options": {
            "limit": options.limit,
            "seed": options.seed,
            "lengths": list(options.lengths),
            "sets": list(options.sets),
            "together": options.together,
            "whole": options.whole,
            "extra": dict(options.extra),
        },
        "command": " ".join(_public(sys.argv[1:])),
        "date": now(),
    }


def _public(arguments: Iterable[str]) -> list[str]:
    """The command without paths of this machine: they mean nothing elsewhere."""
    return [_PATH.sub(r"\1\2", part) for part in arguments]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
