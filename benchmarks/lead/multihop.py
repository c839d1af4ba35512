"""Multi-hop questions asked by a single query and by the lead."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.metrics import sub_em
from benchmarks.suites.base import Bundle, Case, Options
from benchmarks.suites.sets.multihop import load
from hmars.coverage import Span, coverage, mean_interval
from hmars.coverage.spans import overlap, union
from hmars.errors import ModelError
from hmars.fanout import fan_out
from hmars.llm.pool import ModelPool
from hmars.memory import Driver, Memory
from hmars.model import Answer
from hmars.settings import load_profile

DRIVERS: tuple[Driver, ...] = ("single", "lead")


@dataclass
class Tally:
    """What one driver scored over the questions of one set."""

    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def values(self, name: str) -> list[float]:
        """What is known of each question; one that failed is wrong, not left out of the mean."""
        failed = 0.0 if name in ("sub_em", "evidence_recall") else None
        found = [row.get(name, failed) for row in self.rows]
        return [float(value) for value in found if value is not None]

    def count(self, name: str) -> int:
        return sum(bool(row.get(name)) for row in self.rows)


def score(bundle: Bundle, case: Case, answer: Answer) -> dict[str, Any]:
    """The row of one answer."""
    passed = [(span.start, span.end) for span in answer.evidence]
    found = [(item.start, item.end) for r in answer.rounds for item in r.findings]
    calls = sum(usage.calls for usage in answer.usage.values())
    prompt = sum(usage.prompt_tokens for usage in answer.usage.values())
    cached = sum(usage.cached_tokens for usage in answer.usage.values())
    return {
        "answer": answer.answer,
        "gold": list(case.answers),
        "sub_em": 0.0 if answer.abstained else sub_em(_bare(answer), case.answers),
        "abstained": answer.abstained,
        "unclean": not answer.ledger.ok,
        "evidence_recall": coverage(bundle.document.text, case.gold, passed).recall,
        "findings_recall": touched(case, found) if answer.rounds else None,
        "rounds": len(answer.rounds) or None,
        "queries": [list(item.queries) for item in answer.rounds],
        "notes": list(answer.ledger.notes),
        "calls": calls,
        "prompt_tokens": prompt,
        "cached_tokens": cached,
        "seconds": round(answer.seconds.total, 2),
    }


def _bare(answer: Answer) -> str:
    """The answer without the notes that are ours, and without citation marks."""
    text = answer.answer.split("\n\nNote: ")[0]
    for citation in answer.citations:
        text = text.replace(f"[{citation.number}]", " ")
    return text


def touched(case: Case, found: Iterable[Span]) -> float:
    """The share of gold paragraphs in which something lies."""
    merged = union(found)
    hits = sum(any(overlap(place, merged) for place in unit.places) for unit in case.gold)
    return hits / len(case.gold)


def bundles_of(arguments: argparse.Namespace) -> list[Bundle]:
    """The documents in turn from each set, so that a run that is stopped has some of all."""
    options = Options(
        data=arguments.data,
        limit=arguments.limit,
        seed=arguments.seed,
        lengths=(arguments.paragraphs,),
        sets=tuple(name for name in arguments.sets.split(",") if name),
        together=arguments.together,
    )
    by_set: dict[str, list[Bundle]] = {}
    for bundle in load(options):
        by_set.setdefault(bundle.cases[0].set, []).append(bundle)
    return [bundle for row in zip_longest(*by_set.values()) for bundle in row if bundle]


def answered(out: Path | None) -> dict[tuple[str, str], dict[str, Any]]:
    """What an earlier run has written, by driver and question; failures are asked again."""
    if out is None or not out.exists():
        return {}
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {(row["driver"], row["case"]): row for row in rows if "error" not in row}


async def ask_all(arguments: argparse.Namespace) -> dict[tuple[str, Driver], Tally]:
    """Ask every question of every driver; each document in a store of its own."""
    profile = load_profile(arguments.profile, arguments.overrides)
    writer = profile.model_copy(update={"agents": "extractive"}) if arguments.plain else profile
    known = answered(arguments.out) if arguments.resume else {}
    tallies: dict[tuple[str, Driver], Tally] = {}
    pool = ModelPool(profile, cache=None, log=None, warn=_say)
    try:
        served = profile if profile.agents == "extractive" else await pool.served()
        for bundle in bundles_of(arguments):
            with TemporaryDirectory() as folder:
                store = Path(folder) / "m.sqlite"
                async with Memory.open(store, profile=writer) as memory:
                    if any((d, c.id) not in known for c in bundle.cases for d in arguments.drivers):
                        await memory.add(bundle.document.source())
                async with Memory.open(store, profile=served) as memory:
                    for driver in DRIVERS:
                        waiting: list[Case] = []
                        for case in bundle.cases if driver in arguments.drivers else ():
                            tally = tallies.setdefault((case.set, driver), Tally())
                            if row := known.get((driver, case.id)):
                                tally.add(row)
                            else:
                                waiting.append(case)
                        await _each(memory, bundle, waiting, driver, tallies, arguments)
    finally:
        await asyncio.to_thread(pool.close_engines)
    return tallies


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def _each(
    memory: Memory,
    bundle: Bundle,
    cases: Sequence[Case],
    driver: Driver,
    tallies: Mapping[tuple[str, Driver], Tally],
    arguments: argparse.Namespace,
) -> None:
    """Ask some at once, which servers that batch need to be busy; each has its row as it ends."""

    async def one(case: Case) -> None:
        await _one(memory, bundle, case, driver, tallies[case.set, driver], arguments.out)

    await fan_out(cases, one, workers=arguments.at_once)


async def _one(
    memory: Memory, bundle: Bundle, case: Case, driver: Driver, tally: Tally, out: Path | None
) -> None:
    row: dict[str, Any] = {"driver": driver, "set": case.set, "case": case.id}
    try:
        answer = await memory.ask(case.question, driver=driver)
        row |= score(bundle, case, answer)
    except ModelError as error:
        row["error"] = str(error)
    tally.add(row)
    _say(f"{driver:>6} {row.get('sub_em', 0):.0f} {row.get('seconds', 0):>6.1f} s {case.id}")
    if out is not None:
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def multihop(arguments: argparse.Namespace) -> None:
    """Print one line for each set and driver, means with 95 % bootstrap intervals."""
    tallies = asyncio.run(ask_all(arguments))
    print(f"profile {arguments.profile}, {arguments.paragraphs} paragraphs, seed {arguments.seed}")
    print("| set | driver | questions | Sub_EM | evidence recall | findings recall | rounds | s |")
    print("|---|---|---|---|---|---|---|---|")
    for (name, driver), tally in sorted(tallies.items()):
        cells = [name, driver, str(len(tally.rows))]
        cells += [_mean(tally.values(key)) for key in ("sub_em", "evidence_recall")]
        cells += [_mean(tally.values("findings_recall"))]
        cells += [_short(tally.values(key)) for key in ("rounds", "seconds")]
        print("| " + " | ".join(cells) + " |")
        _say(
            f"{name} {driver}: {tally.count('abstained')} abstained, {tally.count('error')} "
            f"failed, {tally.count('unclean')} with failures in the ledger; a question "
            + ", ".join(
                f"{_short(tally.values(key))} {key.replace('_', ' ')}"
                for key in ("calls", "prompt_tokens", "cached_tokens")
            )
        )


def _mean(values: Sequence[float]) -> str:
    interval = mean_interval(values)
    return str(interval) if interval is not None else "–"


def _short(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.2f}" if values else "–"
