"""What indexing and asking give back: answers with proof, ledgers, costs, reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from hmars.model.base import Frozen, Role

# ---------------------------------------------------------------- cost and coverage


class Usage(Frozen):
    """What calls to models cost. Additive. `cached_tokens` is a part of `prompt_tokens`."""

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasks: int = 0
    """Replies that did not validate and were asked for again with the reason."""
    retries: int = 0
    """Requests sent again after a transport failure."""
    paths: dict[str, int] = Field(default_factory=dict[str, int])
    """How often a reply needed help, by kind: fenced, repaired, loop_cut, length_reask, ..."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            reasks=self.reasks + other.reasks,
            retries=self.retries + other.retries,
            paths={
                path: self.paths.get(path, 0) + other.paths.get(path, 0)
                for path in sorted({*self.paths, *other.paths})
            },
        )


class CallRecord(Frozen):
    """One finished question to a model, without its text: for history and bills."""

    ts: str
    """ISO 8601 time in UTC at which it ended."""
    role: Role
    model: str
    prompt: str
    """Prompt id and version, `select_pages@1`."""
    usage: Usage
    seconds: float
    outcome: str
    """`ok`, `cached`, `cancelled`, or the problem it failed with (`timeout`, `auth`, ...)."""


class Failure(Frozen):
    """One thing that went wrong while answering, with its place."""

    stage: Literal["broadcast", "select", "answer", "read", "lead", "verify"]
    document: str | None = None
    region: int | None = None
    group: int | None = None
    problem: str
    reason: str


class Ledger(Frozen):
    """Where every region of the scope ended for one question (promise 2).

    `regions == selected + abstained + failed + truncated + skipped`, always.
    """

    regions: int
    selected: int = 0
    abstained: int = 0
    failed: int = 0
    truncated: int = 0
    skipped: int = 0
    failures: tuple[Failure, ...] = ()
    read_whole: bool = False
    """The scope was small enough to be put before the answer model whole."""
    pages_left_out: int = 0
    """Selected pages that did not fit the answer prompt; the least confident go first."""
    unknown_pages: int = 0
    """Page numbers that models gave and that do not exist in their region."""
    rejected_quotes: int = 0
    """Citations whose quotation is not in the evidence; never shown."""
    regions_without_card: int = 0
    """Regions asked before their card was written (the index is unfinished)."""
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.failures and not self.failed and not self.truncated


# ---------------------------------------------------------------- answers


class Citation(Frozen):
    """A quotation that equals `text[start:end]` of the document (promise 3)."""

    number: int
    """The [number] in the answer's text that it stands behind; several may share one."""
    document: str
    page: int
    label: str
    start: int
    end: int
    quote: str


class EvidenceSpan(Frozen):
    """A stretch of one page that was put before the answer model."""

    document: str
    page: int
    start: int
    end: int
    tokens: int
    confidence: float


Verdict = Literal["unchecked", "match", "mismatch", "unclear"]


class Finding(Frozen):
    """What a reader found for a query of the lead (S-PARSER 3.1); `quote` is `text[start:end]`."""

    agent: int
    """The reader's number, from 1 in reading order of the scope."""
    query: str
    document: str
    region: int
    page: int
    start: int
    end: int
    quote: str
    answer: str
    confidence: float
    verdict: Verdict = "unchecked"
    """Whether the passage is about what the question means, as the verify round found."""


class Round(Frozen):
    """One turn of the lead: queries and what came back, an answer, or neither (`invalid`)."""

    queries: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    invalid: bool = False
    """The turn held no query that could be asked and no answer; it counts all the same."""
    note: str = ""
    """What was wrong with an invalid turn, or what came of an answer."""
    readers: int = 0
    """Readings asked for: queries times windows."""
    failed_readers: int = 0
    skipped_readers: int = 0
    """Readings that the budget did not reach."""
    rejected_quotes: int = 0
    """Findings whose quotation is not in their window; never shown to the lead."""
    left_out: int = 0
    """Findings that did not fit `lead.max_observation_tokens`."""
    seconds: float = 0.0


class Seconds(Frozen):
    broadcast: float = 0.0
    select: float = 0.0
    answer: float = 0.0
    total: float = 0.0


class Answer(Frozen):
    """The result of one question: text, proof and cost. `ask --json` prints exactly this."""

    answer: str
    abstained: bool
    citations: tuple[Citation, ...] = ()
    evidence: tuple[EvidenceSpan, ...] = ()
    ledger: Ledger
    usage: dict[str, Usage] = Field(default_factory=dict[str, Usage])
    seconds: Seconds = Seconds()
    rounds: tuple[Round, ...] = ()
    """Of the lead; empty where no lead drove the question."""


class CardCounts(Frozen):
    written: int = 0
    reused: int = 0
    degraded: int = 0


class IndexSeconds(Frozen):
    load: float = 0.0
    partition: float = 0.0
    cards: float = 0.0
    regional: float = 0.0
    total: float = 0.0


class IndexReport(Frozen):
    """The result of indexing one document. `index --json` prints a list of these."""

    document: str
    title: str
    characters: int
    tokens: int
    pages: int
    regions: int
    groups: int
    cards: CardCounts
    regional: CardCounts = CardCounts()
    usage: dict[str, Usage] = Field(default_factory=dict[str, Usage])
    seconds: IndexSeconds = IndexSeconds()
    warnings: tuple[str, ...] = ()
    unchanged: bool = False


# ---------------------------------------------------------------- progress


WAITING = "waiting"
"""The stage of a `Progress` whose note says what a call waits for, such as a rate limit."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A step of a long run, for whoever watches. `total` is 0 where it is not known."""

    stage: str
    done: int
    total: int
    note: str = ""
