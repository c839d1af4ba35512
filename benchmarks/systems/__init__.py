"""Systems by name. A name may carry sizes: `bm25-1k`, `rag-4k-k5`, `rerank-n100`, `memagent-8k`.

`-256`, `-1k`, `-4k`: tokens a chunk; `-kN`: chunks passed on; `-nN`: candidates to rerank.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.bench import Bench, Retriever, System
from benchmarks.systems.bm25 import Bm25System
from benchmarks.systems.full import FullContextSystem, NoContextSystem
from benchmarks.systems.graph import GraphRagSystem
from benchmarks.systems.hierarchy import HmarsSystem
from benchmarks.systems.rag import RagSystem
from benchmarks.systems.rerank import RerankSystem
from benchmarks.systems.search import AgenticRagSystem
from benchmarks.systems.sequential import (
    ChainOfAgentsSystem,
    MapReduceSystem,
    MemAgentSystem,
    ReMemSystem,
)
from hmars.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a name says beside the system; None takes the system's own default."""

    chunk: int | None = None
    count: int | None = None
    candidates: int | None = None


Maker = Callable[[Bench, Sizes], System]

MAKERS: dict[str, Maker] = {
    "hmars": lambda bench, _: HmarsSystem(bench),
    "hmars-lead": lambda bench, _: HmarsSystem(bench, "lead"),
    "hmars-dispatched": lambda bench, _: HmarsSystem(bench, "dispatched"),
    "hmars-no-mid": lambda bench, _: HmarsSystem(bench, "no-mid"),
    "hmars-pointwise": lambda bench, _: HmarsSystem(bench, "single", "pointwise"),
    "hmars-listwise": lambda bench, _: HmarsSystem(bench, "single", "listwise"),
    "parser": lambda bench, _: HmarsSystem(bench, "parser"),
    "bm25": lambda bench, sizes: Bm25System(
        bench, size=sizes.chunk or 256, count=sizes.count or 40
    ),
    "rag": lambda bench, sizes: RagSystem(bench, size=sizes.chunk or 1024, count=sizes.count or 20),
    "rerank": lambda bench, sizes: RerankSystem(
        bench,
        size=sizes.chunk or 1024,
        count=sizes.count or 12,
        candidates=sizes.candidates or 50,
    ),
    "agentic-rag": lambda bench, sizes: AgenticRagSystem(bench, size=sizes.chunk or 1024, count=0),
    "full-context": lambda bench, _: FullContextSystem(bench),
    "no-context": lambda bench, _: NoContextSystem(bench),
    "graphrag": lambda bench, sizes: GraphRagSystem(bench, sizes.chunk or 1024),
    "chain-of-agents": lambda bench, sizes: ChainOfAgentsSystem(bench, sizes.chunk),
    "memagent": lambda bench, sizes: MemAgentSystem(bench, sizes.chunk),
    "rememr1": lambda bench, sizes: ReMemSystem(bench, sizes.chunk),
    "mapreduce": lambda bench, sizes: MapReduceSystem(bench, sizes.chunk),
}
_SIZE = re.compile(r"-(?:(?P<k>k)(?P<count>\d+)|(?P<n>n)(?P<pool>\d+)|(?P<chunk>\d+)(?P<kilo>k?))$")


def names() -> list[str]:
    return sorted(MAKERS)


def make(name: str, bench: Bench) -> System:
    """The system of that name.

    Raises:
        ConfigError: no such system, or the profile cannot run it.
        MissingExtraError: it needs a package that is not installed.
    """
    base, sizes = parse(name)
    return MAKERS[base](bench, sizes)


def make_retriever(name: str, bench: Bench) -> Retriever:
    """The system of that name as one that can retrieve without answering.

    Raises:
        ConfigError: it passes on no source text, or cannot be told a budget.
    """
    system = make(name, bench)
    if not isinstance(
        system,
        HmarsSystem | Bm25System | RagSystem | RerankSystem | AgenticRagSystem | FullContextSystem,
    ):
        raise ConfigError(f"{name} has no evidence apart from its answer: leave it out here.")
    return system


def parse(name: str) -> tuple[str, Sizes]:
    """A name as system and sizes."""
    chunk = count = candidates = None
    base = name
    while base not in MAKERS:
        match = _SIZE.search(base)
        if match is None:
            raise ConfigError(f"There is no system '{name}': use one of {', '.join(names())}.")
        base = base[: match.start()]
        if match["k"]:
            count = int(match["count"])
        elif match["n"]:
            candidates = int(match["pool"])
        else:
            chunk = int(match["chunk"]) * (1024 if match["kilo"] else 1)
    return base, Sizes(chunk, count, candidates)
