"""Put every query of a turn before every window at once, and verify what comes back (3.1)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hmars.errors import CallFailed
from hmars.fanout import fan_out
from hmars.grounding import Grounder
from hmars.model import Failure, Finding
from hmars.query.agents import Guidance
from hmars.query.consider import Counter
from hmars.query.lead.agents import Claim, Reader, Reading, Window
from hmars.query.lead.observe import Gathered
from hmars.query.ledger import LedgerBook, Outcome, RegionKey

CUT = ("length", "prompt_cut")


def normal(query: str) -> str:
    """Equal for queries that differ in case, white space or their last sign only."""
    return " ".join(query.casefold().split()).rstrip(" .?!")


@dataclass(frozen=True, slots=True)
class Order:
    """One query and the windows that are to be asked it."""

    query: str
    windows: tuple[Window, ...]
    facts: tuple[str, ...] = ()
    guidance: Mapping[RegionKey, Guidance] = field(default_factory=dict[RegionKey, Guidance])


@dataclass
class ReadBook:
    """Every reading of a question: where each ended, so that each region ends exactly once.

    A region is *selected* if any of its windows gave a finding whose quotation is verified, in any
    round. Else it is *failed* (or *truncated*, where all its failures are cut prompts or replies)
    if a reading of it failed and was not made good by asking the same query again. Else it is
    *skipped* if it was asked nothing, or the budget did not reach for a reading of it. Else it has
    *abstained*: every reading that was asked of it came back, and none found anything. A blank
    region has abstained.
    """

    found: set[RegionKey] = field(default_factory=set[RegionKey])
    asked: dict[RegionKey, int] = field(default_factory=dict[RegionKey, int])
    failures: dict[tuple[str, int], tuple[RegionKey, CallFailed]] = field(
        default_factory=dict[tuple[str, int], tuple[RegionKey, CallFailed]]
    )
    """By query and window: the failures that still stand."""
    refused: dict[RegionKey, int] = field(default_factory=dict[RegionKey, int])
    """How many readings of a region the budget did not reach."""
    refusal: str = ""
    """What the budget said to them."""

    @property
    def failed(self) -> int:
        """Readings that failed and were not made good."""
        return len(self.failures)

    @property
    def skipped(self) -> int:
        """Readings that the budget did not reach."""
        return sum(self.refused.values())

    @property
    def total(self) -> int:
        return sum(self.asked.values()) + self.skipped

    def failed_windows(self, query: str) -> set[int]:
        return {agent for asked, agent in self.failures if asked == normal(query)}

    def enter(self, query: str, window: Window, outcome: Sequence[Finding] | CallFailed) -> None:
        region = (window.document, window.region)
        if isinstance(outcome, CallFailed) and outcome.problem == "budget":
            self.refused[region] = self.refused.get(region, 0) + 1
            self.refusal = str(outcome)
            return
        self.asked[region] = self.asked.get(region, 0) + 1
        if isinstance(outcome, CallFailed):
            self.failures[normal(query), window.agent] = (region, outcome)
            return
        self.failures.pop((normal(query), window.agent), None)
        if outcome:
            self.found.add(region)

    def close_into(self, book: LedgerBook) -> None:
        """Give every region of the book's scope its outcome, and name the failures."""
        failed: dict[RegionKey, list[CallFailed]] = {}
        for region, error in self.failures.values():
            failed.setdefault(region, []).append(error)
        for index, region in book.scope.regions():
            key = (index.document.id, region.index)
            errors = failed.get(key, [])
            book.enter(key, self._outcome(key, errors, blank=region.blank))
            if errors:
                book.failures.append(_failure(key, errors, self.asked[key]))

    def _outcome(self, key: RegionKey, errors: Sequence[CallFailed], *, blank: bool) -> Outcome:
        if key in self.found:
            return "selected"
        if errors:
            cut = all(error.problem in CUT for error in errors)
            return "truncated" if cut else "failed"
        read = key in self.asked and key not in self.refused
        return "abstained" if blank or read else "skipped"


def _failure(key: RegionKey, errors: Sequence[CallFailed], asked: int) -> Failure:
    return Failure(
        stage="read",
        document=key[0],
        region=key[1],
        problem=errors[0].problem,
        reason=f"{len(errors)} of {asked} readings failed: {errors[0]}",
    )


async def scatter(
    orders: Sequence[Order],
    reader: Reader,
    book: ReadBook,
    *,
    workers: int,
    progress: Counter,
) -> list[Gathered]:
    """Ask all windows of all orders at once; results by order. A failed reading never raises.

    Raises:
        EndpointError: the readers' endpoint cannot serve any call.
    """
    # Window by window: requests that share the expensive prefix stand next to each other.
    widest = max((len(order.windows) for order in orders), default=0)
    tasks = [
        (number, order.windows[at])
        for at in range(widest)
        for number, order in enumerate(orders)
        if at < len(order.windows)
    ]

    async def read(task: tuple[int, Window]) -> tuple[list[Finding], int] | CallFailed:
        number, window = task
        order = orders[number]
        try:
            claims = await reader.read(_reading(order, window), window)
        except CallFailed as error:
            book.enter(order.query, window, error)
            return error
        finally:
            progress.step()
        findings, rejected = verified(claims, window, order.query)
        book.enter(order.query, window, findings)
        return findings, rejected

    outcomes = await fan_out(tasks, read, workers=workers)
    found: list[list[Finding]] = [[] for _ in orders]
    failed, skipped, rejected = ([0] * len(orders) for _ in range(3))
    for (number, _), outcome in zip(tasks, outcomes, strict=True):
        if isinstance(outcome, CallFailed):
            (skipped if outcome.problem == "budget" else failed)[number] += 1
        else:
            found[number].extend(outcome[0])
            rejected[number] += outcome[1]
    return [
        Gathered(
            query=order.query,
            findings=tuple(found[number]),
            readers=len(order.windows),
            failed=failed[number],
            skipped=skipped[number],
            rejected=rejected[number],
        )
        for number, order in enumerate(orders)
    ]


def _reading(order: Order, window: Window) -> Reading:
    guidance = order.guidance.get((window.document, window.region))
    hint = ""
    if guidance is not None:
        parts = dict.fromkeys((guidance.interpretation, guidance.hint))
        hint = " ".join(part for part in parts if part and part != order.query)
    return Reading(order.query, hint, order.facts)


def verified(claims: Sequence[Claim], window: Window, query: str) -> tuple[list[Finding], int]:
    """Claims as findings whose quotation is the window's own text; and how many were dropped."""
    ground = Grounder(window.text)
    findings: list[Finding] = []
    rejected = 0
    for claim in claims:
        span = ground.find(claim.quote)
        if span is None:
            rejected += 1
            continue
        start, end = window.start + span[0], window.start + span[1]
        page = window.pages[bisect_right(window.pages, start, key=lambda page: page.start) - 1]
        findings.append(
            Finding(
                agent=window.agent,
                query=query,
                document=window.document,
                region=window.region,
                page=page.index,
                start=start,
                end=end,
                quote=window.text[slice(*span)],
                answer=claim.answer,
                confidence=claim.confidence,
            )
        )
    return findings, rejected
