"""A question while three replies in ten are faulty: where every region ends, and what it cost.

    python -m benchmarks.failures [--regions 1000] [--share 0.3]

The server is the scripted one of the tests, on a real socket; the kinds of fault take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hmars import Memory
from hmars.model import Answer
from hmars.settings import Profile, load_profile
from tests.scripted_server import Reply, ScriptedServer, Seen

ROLES = ("card", "region", "broadcast", "select", "answer")
GOOD = json.dumps({"pages": [{"page": 1, "confidence": 0.7, "why": "it helps"}]})
NONE = json.dumps({"pages": []})
FAULTS: dict[str, Reply] = {
    "prose instead of JSON": Reply("I think page one is the best choice here."),
    "wrong shape": Reply('{"answer": 42}'),
    "cut at the limit": Reply('{"pages": [{"page": 1, "why": "', finish_reason="length"),
    "repetition loop": Reply('{"pages": [' + "1, " * 3000, finish_reason="length"),
    "server error": Reply(status=500),
    "rate limit": Reply(status=429, headers={"Retry-After": "0"}),
    "connection dropped": Reply(drop="before"),
    "empty reply": Reply(""),
    "fenced with prose (repaired)": Reply(f"Sure!\n```json\n{GOOD}\n```\nDone."),
    "page that does not exist": Reply('{"pages": [{"page": 99, "confidence": 1, "why": "x"}]}'),
}
RETRIES = 2


def fault_of(region: str, share: float, seed: int) -> str | None:
    """The fault of a region: the same in every run, and at every attempt at this region."""
    draw = random.Random(f"{seed}-{region}")
    return draw.choice(list(FAULTS)) if draw.random() < share else None


def region_of(seen: Seen) -> str | None:
    """The region a selecting prompt shows, by the key that its calls carry for routers."""
    return seen.headers["X-Session-ID"] if "You guard the pages" in seen.text else None


def text_of(regions: int) -> str:
    return "\n\n".join(
        f"Entry {n:04d}. The keeper of pier {n} is called Orla Venn {n}, and she counts {3 * n} "
        f"lamps every evening before the ferry of pier {n} leaves for the other side."
        for n in range(1, regions + 1)
    )


def profile_at(url: str, folder: Path) -> Profile:
    path = folder / "failures.toml"
    roles = "".join(f'[roles.{role}]\nendpoint = "s"\nmodel = "scripted"\n' for role in ROLES)
    path.write_text(
        'agents = "model"\n[partition]\npage_tokens = 64\nregion_tokens = 64\n'
        f'[endpoints.s]\nbase_url = "{url}"\nin_flight = 32\nretries = {RETRIES}\n{roles}',
        encoding="utf-8",
    )
    return load_profile(path)


async def measure(regions: int, share: float, seed: int) -> str:
    with tempfile.TemporaryDirectory() as name, ScriptedServer() as server:
        folder = Path(name)
        profile = profile_at(server.base_url, folder)
        cards = profile.model_copy(update={"agents": "extractive"})
        store = folder / "memory.sqlite"
        async with Memory.open(store, profile=cards) as memory:
            report = await memory.add(text_of(regions), title="Piers")
        calls: Counter[str] = Counter()

        def select(seen: Seen) -> Reply | None:
            region = region_of(seen)
            if region is None:
                return None
            calls[region] += 1
            fault = fault_of(region, share, seed)
            return FAULTS[fault] if fault else Reply(GOOD if region.startswith("00") else NONE)

        server.on(lambda seen: region_of(seen) is not None, select)
        began = time.perf_counter()
        async with Memory.open(store, profile=profile) as memory:
            answer = await memory.ask("How many lamps are counted?")
        seconds = time.perf_counter() - began
    return table(answer, calls, report.regions, share, seed, seconds)


def table(
    answer: Answer, calls: Counter[str], regions: int, share: float, seed: int, seconds: float
) -> str:
    ledger, usage = answer.ledger, answer.usage["select"]
    ends = {
        name: getattr(ledger, name)
        for name in ("selected", "abstained", "failed", "truncated", "skipped")
    }
    faults = Counter(fault_of(region, share, seed) or "none" for region in calls)
    problems = Counter(failure.problem for failure in ledger.failures)
    allowance = 2 * (1 + RETRIES)  # a reply and its one re-ask, each with its retries
    whole = sum(ends.values()) == ledger.regions == regions
    lines = [
        f"{regions:,} regions, {share:.0%} faulty replies, seed {seed}, {seconds:.1f} s",
        "| fault | regions |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in sorted(faults.items())),
        "",
        "| where they ended | regions |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in ends.items()),
        "",
        f"failures named in the ledger: {dict(sorted(problems.items()))}",
        f"usage of select: {usage.calls} calls, {usage.reasks} re-asks, {usage.retries} retries, "
        f"paths {usage.paths}",
        f"requests the server saw: {sum(calls.values())}; most for one region: "
        f"{max(calls.values())} (allowed: {allowance})",
        f"every region accounted for: {'yes' if whole else 'NO'}; failures named: "
        f"{'all' if len(ledger.failures) == ledger.failed + ledger.truncated else 'NOT ALL'}; "
        f"calls counted: {'all' if usage.calls == sum(calls.values()) else 'NOT ALL'}",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--regions", type=int, default=1000)
    parser.add_argument("--share", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    # Replies that run in a loop are broken off by hmars: the server need not complain of it.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    print(asyncio.run(measure(options.regions, options.share, options.seed)))


if __name__ == "__main__":
    main()
