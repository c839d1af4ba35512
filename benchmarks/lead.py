"""The lead against the single query, and its time against the number of windows.

    python -m benchmarks.lead latency --windows 100 1000 --latency 2
    python -m benchmarks.lead multihop --data DIR --profile PROFILE --limit 90

`latency`: a server in a process of its own answers every call after a fixed time, with permits for
all readers at once. The critical path of a question of three turns of which two ask is five
latencies, however long the text; what is above it is the cost of the fan-out itself.

`multihop`: HotpotQA, 2WikiMultiHopQA and MuSiQue packed into documents of 50 paragraphs (or
`--paragraphs`). Sub_EM is the honest one: a reply that says there is no answer is never right.
Findings recall is the share of supporting paragraphs in which a verified finding lies; evidence
recall the share that lies wholly in what was put before the answer model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aiohttp import web

from benchmarks.metrics import sub_em
from benchmarks.suites.base import Bundle, Case, Options
from benchmarks.suites.sets.multihop import load
from hmars.coverage import Span, coverage, mean_interval
from hmars.coverage.spans import overlap, union
from hmars.errors import HmarsError, ModelError
from hmars.llm.stack import ModelStack
from hmars.memory import Driver, Memory
from hmars.model import Answer, Document, DocumentIndex, Group, Page, Region, Role
from hmars.prompts import PromptLibrary
from hmars.query.agents import Scope
from hmars.query.family import model_query_agents
from hmars.query.lead import LeadResult, ask_lead, lead_settings, model_lead_agents
from hmars.settings import Profile, load_profile
from hmars.tokens import WordTokenizer

ROLES: tuple[Role, ...] = ("card", "region", "broadcast", "select", "answer", "lead", "read")
WINDOW_WORDS = 3_000
TURNS, ASKING = 3, 2
DRIVERS: tuple[Driver, ...] = ("single", "lead")


# ------------------------------------------------------------------ time against windows


def serve(latency_s: float, channel: Connection) -> None:
    """Answer every call after `latency_s`: readers abstain, the lead asks twice and answers."""

    async def answer(request: web.Request) -> web.Response:
        body: dict[str, Any] = await request.json()
        await asyncio.sleep(latency_s)
        message: dict[str, Any] = {"role": "assistant", "content": '{"findings": []}'}
        if body.get("tools"):
            message = lead_turn(body["messages"])
        return web.json_response(
            {
                "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 5_000, "completion_tokens": 6},
            }
        )

    async def run() -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
        channel.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    _many_files()
    asyncio.run(run())


def lead_turn(messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    done = sum(message["role"] == "assistant" for message in messages)
    if done >= ASKING:
        return {"role": "assistant", "content": "<answer>Not in the document</answer>"}
    function = {"name": "query_agents", "arguments": json.dumps({"query": f"query {done}"})}
    call = {"id": f"call-{done}-x", "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _many_files() -> None:
    """A socket for each call under way."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def long_index(windows: int) -> DocumentIndex:
    """A document of `windows` pages of one window each, four to a region."""
    pages: list[Page] = []
    start = 0
    for number in range(1, windows + 1):
        text = f"Page {number}. " + "word " * (WINDOW_WORDS - 2) + "\n"
        pages.append(Page(number, start, start + len(text), WINDOW_WORDS, f"p. {number}", "", text))
        start += len(text)
    regions = tuple(
        Region("long", at // 4 + 1, tuple(pages[at : at + 4])) for at in range(0, windows, 4)
    )
    numbers = tuple(region.index for region in regions)
    document = Document(
        id="long",
        namespace="default",
        title="Long",
        source="long",
        kind="text",
        content_hash="0",
        characters=start,
        tokens=windows * WINDOW_WORDS,
        pages=windows,
        regions=len(regions),
        groups=1,
        tokenizer="words",
        updated="2026-01-01T00:00:00+00:00",
    )
    return DocumentIndex(document, regions, (Group(1, numbers),))


def latency_profile(port: int, permits: int) -> Profile:
    endpoint = {
        "base_url": f"http://127.0.0.1:{port}/v1",
        "in_flight": permits,
        "structured": "json_schema",
    }
    return Profile.model_validate(
        {
            "agents": "model",
            "endpoints": {"local": endpoint},
            "roles": {
                role: {"endpoint": "local", "model": "m", "max_tokens": 256} for role in ROLES
            },
            "lead": {"hints": False},
        }
    )


async def time_of(windows: int, port: int) -> tuple[float, LeadResult]:
    """Seconds of one question over a text of `windows` windows."""
    profile = latency_profile(port, permits=windows + 8)
    scope, tokenizer, prompts = Scope((long_index(windows),)), WordTokenizer(), PromptLibrary()
    async with ModelStack(profile) as stack:
        guide = model_query_agents(profile, stack.model, prompts, tokenizer, scope)
        agents = model_lead_agents("What?", profile, stack.model, prompts, tokenizer, scope, guide)
        settings = lead_settings(profile, workers=windows + 8)
        began = time.perf_counter()
        result = await ask_lead("What?", scope, agents, settings, tokenizer)
        return time.perf_counter() - began, result


def latency(arguments: argparse.Namespace) -> None:
    """Print wall time by number of windows, against the critical path and the shortest text."""
    _many_files()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(arguments.latency, theirs), daemon=True)
    server.start()
    try:
        port: int = ours.recv()
        critical = (TURNS + ASKING) * arguments.latency
        print(f"latency {arguments.latency:g} s, critical path {critical:g} s")
        print("windows  rounds   calls   wall s  /critical  cpu s here")
        walls: list[float] = []
        for windows in arguments.windows:
            spent = time.process_time()
            wall, result = asyncio.run(time_of(windows, port))
            spent = time.process_time() - spent
            walls.append(wall)
            rounds = result.answer.rounds
            calls = sum(item.readers for item in rounds) + len(rounds)
            print(
                f"{windows:>7} {len(rounds):>7} {calls:>7} {wall:>8.2f} {wall / critical:>10.2f} "
                f"{spent:>11.2f}"
            )
        growth = arguments.windows[-1] / arguments.windows[0]
        print(f"{growth:g} times the windows take {walls[-1] / walls[0]:.2f} times as long")
    finally:
        server.terminate()
        server.join()


# ------------------------------------------------------------------ multi-hop questions


@dataclass
class Tally:
    """What one driver scored over the questions of one set."""

    sub_em: list[float] = field(default_factory=list[float])
    evidence: list[float] = field(default_factory=list[float])
    findings: list[float] = field(default_factory=list[float])
    rounds: list[float] = field(default_factory=list[float])
    seconds: list[float] = field(default_factory=list[float])
    abstained: int = 0
    failed: int = 0
    unclean: int = 0
    """Answers whose ledger has failures."""


def score(tally: Tally, bundle: Bundle, case: Case, answer: Answer) -> dict[str, Any]:
    """Add one answer to the tally; returns the row for the record."""
    passed = [(span.start, span.end) for span in answer.evidence]
    found = [(item.start, item.end) for r in answer.rounds for item in r.findings]
    right = 0.0 if answer.abstained else sub_em(_bare(answer), case.answers)
    evidence = coverage(bundle.document.text, case.gold, passed).recall
    findings = touched(case, found) if answer.rounds else None
    tally.sub_em.append(right)
    tally.evidence.append(evidence)
    tally.seconds.append(answer.seconds.total)
    tally.abstained += answer.abstained
    tally.unclean += not answer.ledger.ok
    if findings is not None:
        tally.findings.append(findings)
        tally.rounds.append(len(answer.rounds))
    return {
        "case": case.id,
        "answer": answer.answer,
        "gold": list(case.answers),
        "sub_em": right,
        "evidence_recall": evidence,
        "findings_recall": findings,
        "rounds": len(answer.rounds),
        "queries": [list(item.queries) for item in answer.rounds],
        "notes": list(answer.ledger.notes),
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


async def ask_all(arguments: argparse.Namespace) -> dict[tuple[str, Driver], Tally]:
    """Ask every question both ways; each document in a store of its own."""
    profile = load_profile(arguments.profile, arguments.overrides)
    sets = tuple(name for name in arguments.sets.split(",") if name)
    options = Options(
        data=arguments.data,
        limit=arguments.limit,
        seed=arguments.seed,
        lengths=(arguments.paragraphs,),
        sets=sets,
    )
    tallies: dict[tuple[str, Driver], Tally] = {}
    drivers: tuple[Driver, ...] = tuple(name for name in DRIVERS if name in arguments.drivers)
    for bundle in load(options):
        with TemporaryDirectory() as folder:
            async with Memory.open(Path(folder) / "m.sqlite", profile=profile) as memory:
                await memory.add(bundle.document.source())
                for case in bundle.cases:
                    for driver in drivers:
                        tally = tallies.setdefault((case.set, driver), Tally())
                        await _one(memory, bundle, case, driver, tally, arguments.out)
    return tallies


async def _one(
    memory: Memory, bundle: Bundle, case: Case, driver: Driver, tally: Tally, out: Path | None
) -> None:
    try:
        answer = await memory.ask(case.question, driver=driver)
        row = score(tally, bundle, case, answer)
    except ModelError as error:
        # A question that could not be answered at all is wrong, not left out of the mean.
        tally.failed += 1
        tally.sub_em.append(0.0)
        tally.evidence.append(0.0)
        row = {"case": case.id, "error": str(error)}
    print(f"{driver:>6} {row.get('sub_em', 0):.0f} {case.id}", file=sys.stderr, flush=True)
    if out is not None:
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"driver": driver, **row}, ensure_ascii=False) + "\n")


def multihop(arguments: argparse.Namespace) -> None:
    """Print one line for each set and driver, means with 95 % bootstrap intervals."""
    tallies = asyncio.run(ask_all(arguments))
    print(f"profile {arguments.profile}, {arguments.paragraphs} paragraphs, seed {arguments.seed}")
    print("| set | driver | questions | Sub_EM | evidence recall | findings recall | rounds | s |")
    print("|---|---|---|---|---|---|---|---|")
    for (name, driver), tally in sorted(tallies.items()):
        count = len(tally.sub_em)
        cells = [name, driver, str(count), *map(_mean, (tally.sub_em, tally.evidence))]
        cells += [_mean(tally.findings), _short(tally.rounds), _short(tally.seconds)]
        print("| " + " | ".join(cells) + " |")
        print(
            f"{name} {driver}: {tally.abstained} abstained, {tally.failed} failed, "
            f"{tally.unclean} with failures in the ledger",
            file=sys.stderr,
        )


def _mean(values: Sequence[float]) -> str:
    interval = mean_interval(values)
    return str(interval) if interval is not None else "–"


def _short(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.2f}" if values else "–"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benchmarks.lead", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    timed = commands.add_parser("latency", help="wall time against the number of windows")
    timed.add_argument("--windows", type=int, nargs="+", default=[100, 1000])
    timed.add_argument("--latency", type=float, default=2.0, help="seconds of every call")
    timed.set_defaults(run=latency)
    asked = commands.add_parser("multihop", help="single and lead on multi-hop questions")
    asked.add_argument("--data", type=Path, required=True, help="the folder that holds multihop/")
    asked.add_argument("--profile", default="extractive", help="a profile's name or file")
    asked.add_argument("--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE")
    asked.add_argument("--limit", type=int, default=90, help="questions, spread over the sets")
    asked.add_argument("--paragraphs", type=int, default=50)
    asked.add_argument("--sets", default="", help="with commas: hotpotqa, 2wiki, musique")
    asked.add_argument("--drivers", nargs="+", choices=DRIVERS, default=list(DRIVERS))
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--out", type=Path, help="add one line of JSON a question to this file")
    asked.set_defaults(run=multihop)
    return top


def main() -> None:
    arguments = parser().parse_args()
    try:
        arguments.run(arguments)
    except HmarsError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
