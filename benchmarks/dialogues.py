"""Evidence turns found in real conversations: the extractive profile against BM25 over turns.

    python -m benchmarks.dialogues --data DIR [--limit 100] [--sets A,B] [--budgets 2000,8000]

Conversations are indexed as `hmars index` does, without any model. For each question both systems
fill the same budget of evidence tokens (of the tokenizer `words`): hmars with what its regions
select, BM25 with whole turns under their headers, best first, with the same terms and stemming;
turns that match nothing come last, in reading order, so that no budget is left unused.
Turn recall is the share of gold turns of which at least nine tenths of the characters are in the
evidence; where a set names its evidence by stretch or session, every turn of that is gold. Unit
recall is the share of the set's own gold units, whole. Differences of turn recall have 95 %
bootstrap intervals over questions.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.suites.base import BenchDocument, Bundle, Case, Options, gold_of, spread
from benchmarks.suites.sets import beam, lihua, locomo, longmemeval, memdaily, qmsum, realmem
from hmars.coverage import GoldUnit, Span, coverage, mean_interval, paired_difference
from hmars.lexical import Bm25, Terms
from hmars.memory import Memory
from hmars.query.agents import QueryAgents, Scope
from hmars.query.consider import broadcast_all, select_all
from hmars.query.evidence import assemble
from hmars.query.extractive import extractive_agents
from hmars.query.ledger import LedgerBook
from hmars.settings import TokenizerSettings, load_profile
from hmars.tokens import Tokenizer, load_tokenizer

SETS: dict[str, Callable[[Options], Iterator[Bundle]]] = {
    "locomo": locomo.load,
    "realmem": realmem.load,
    "beam": beam.load,
    "longmemeval": longmemeval.load,
    "memdaily": memdaily.load,
    "lihua_world": lihua.load,
    "qmsum": qmsum.load,
}


Recall = dict[int, dict[str, float]]
"""By budget and question."""


def _recall() -> Recall:
    return {}


@dataclass
class Found:
    """What both systems found on one set."""

    turns_hmars: Recall = field(default_factory=_recall)
    turns_bm25: Recall = field(default_factory=_recall)
    units_hmars: Recall = field(default_factory=_recall)
    units_bm25: Recall = field(default_factory=_recall)
    documents: int = 0
    turns: int = 0
    tokens: int = 0
    index_seconds: float = 0.0

    def note(
        self, budget: int, case: Case, asked: Asked, ours: list[Span], other: list[Span]
    ) -> None:
        for recalls, gold, spans in (
            (self.turns_hmars, asked.gold_turns, ours),
            (self.turns_bm25, asked.gold_turns, other),
            (self.units_hmars, case.gold, ours),
            (self.units_bm25, case.gold, other),
        ):
            found = coverage(asked.text, gold, spans).nearly
            recalls.setdefault(budget, {})[case.id] = found


@dataclass(frozen=True)
class Asked:
    """A question's document, and its gold turn by turn."""

    text: str
    gold_turns: tuple[GoldUnit, ...]


class TurnRanker:
    """BM25 over the turns of one document, each with its header."""

    def __init__(self, document: BenchDocument, tokenizer: Tokenizer) -> None:
        starts = [mark.start for mark in document.marks if mark.kind == "turn"]
        self._terms = Terms()
        self.spans = list(zip(starts, [*starts[1:], len(document.text)], strict=True))
        texts = [document.text[start:end] for start, end in self.spans]
        self.said = [
            (start + text.find("\n") + 1, end)
            for (start, end), text in zip(self.spans, texts, strict=True)
        ]
        self._tokens = [tokenizer.count(text) for text in texts]
        self._index = Bm25([self._terms.of(text) for text in texts])

    def rank(self, question: str) -> list[int]:
        scores = self._index.scores(dict.fromkeys(self._terms.content(question), 1.0))
        order: list[int] = np.argsort(-scores, kind="stable").tolist()
        return order

    def gold(self, case: Case) -> tuple[GoldUnit, ...]:
        """What was said in each turn that a gold unit holds (its header is not asked for)."""
        units: dict[Span, None] = {}
        for start, end in (place for unit in case.gold for place in unit.places):
            for low, high in self.said:
                if low < end and start < high:
                    units[low, high] = None
        return gold_of(units)

    def fill(self, ranked: Sequence[int], budget: int) -> list[Span]:
        """The best turns that fit; a turn too long for what is left is passed over."""
        chosen: list[Span] = []
        left = budget
        for at in ranked:
            if self._tokens[at] <= left:
                chosen.append(self.spans[at])
                left -= self._tokens[at]
        return chosen


async def measure(name: str, options: Options, budgets: Sequence[int]) -> Found:
    """Both systems on one data set."""
    found = Found()
    tokenizer = load_tokenizer(profile_tokenizer())
    with tempfile.TemporaryDirectory(prefix="hmars-dialogues-") as folder:
        async with Memory.open(Path(folder) / "memory.sqlite") as memory:
            for bundle, cases in _chosen(name, options):
                await _document(memory, bundle.document, cases, budgets, tokenizer, found)
    return found


def _chosen(name: str, options: Options) -> Iterator[tuple[Bundle, list[Case]]]:
    """Documents with the questions that are asked. Read twice, as all at once may be gigabytes."""
    cases = [case for bundle in SETS[name](options) for case in bundle.cases if case.gold]
    chosen = spread(
        cases,
        options.limit,
        stratum=lambda case: case.kind,
        name=lambda case: case.id,
        seed=options.seed,
    )
    wanted = {case.id for case in chosen}
    for bundle in SETS[name](options):
        kept = [case for case in bundle.cases if case.id in wanted]
        if kept:
            yield bundle, kept


def profile_tokenizer() -> TokenizerSettings:
    return load_profile("extractive").tokenizer


async def _document(
    memory: Memory,
    document: BenchDocument,
    cases: Sequence[Case],
    budgets: Sequence[int],
    tokenizer: Tokenizer,
    found: Found,
) -> None:
    began = time.perf_counter()
    report = await memory.add(document.source())
    found.index_seconds += time.perf_counter() - began
    scope = Scope((await memory.hierarchy(report.document),))
    await memory.forget(report.document)
    agents = extractive_agents(scope, tokenizer)
    turns = TurnRanker(document, tokenizer)
    found.documents += 1
    found.turns += len(turns.spans)
    found.tokens += report.tokens
    for case in cases:
        ranked = turns.rank(case.question)
        asked = Asked(document.text, turns.gold(case))
        evidence = await _evidence(case.question, scope, agents, budgets, tokenizer)
        for budget, ours in evidence.items():
            found.note(budget, case, asked, ours, turns.fill(ranked, budget))


async def _evidence(
    question: str,
    scope: Scope,
    agents: QueryAgents,
    budgets: Sequence[int],
    tokenizer: Tokenizer,
) -> dict[int, list[Span]]:
    """What would stand before the answering model, by budget."""
    book = LedgerBook(scope)
    guidance = await broadcast_all(question, scope, agents, book, workers=8)
    selections = await select_all(question, scope, agents, guidance, book, workers=8)
    return {
        budget: [
            (span.start, span.end) for span in assemble(scope, selections, budget, tokenizer).spans
        ]
        for budget in budgets
    }


def row(name: str, found: Found, budgets: Sequence[int]) -> str:
    """One line of the table."""
    first = budgets[0]
    means = [
        " / ".join(_mean(recall.get(budget, {})) for budget in budgets)
        for recall in (found.turns_hmars, found.turns_bm25, found.units_hmars, found.units_bm25)
    ]
    gains = [
        paired_difference(found.turns_hmars[budget], found.turns_bm25[budget]) for budget in budgets
    ]
    shown = " / ".join(
        f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]" for gain in gains if gain
    )
    per_document = found.tokens // max(1, found.documents)
    return (
        f"| {name} | {len(found.turns_hmars[first])} | {found.documents} | {found.turns:,} | "
        f"{per_document:,} | {means[0]} | {means[1]} | {shown} | {means[2]} | {means[3]} | "
        f"{found.index_seconds:.0f} s |"
    )


def _mean(values: dict[str, float]) -> str:
    interval = mean_interval(list(values.values()))
    return f"{interval.mean:.3f}" if interval else "-"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--limit", type=int, default=100, help="questions a set; 0 takes all")
    parser.add_argument("--budgets", default="2000,4000,8000")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    budgets = [int(budget) for budget in given.budgets.split(",")]
    options = Options(data=given.data, limit=given.limit or None, seed=given.seed)
    sizes = " / ".join(f"{budget // 1000}K" for budget in budgets)
    print(
        f"| set | questions | documents | turns | tokens a document | hmars, turns {sizes} | "
        f"BM25, turns {sizes} | difference | hmars, units {sizes} | BM25, units {sizes} | "
        "indexing |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in given.sets.split(","):
        found = asyncio.run(measure(name, dataclasses.replace(options), budgets))
        print(row(name, found, budgets), flush=True)


if __name__ == "__main__":
    main()
