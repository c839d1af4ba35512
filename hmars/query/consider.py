"""Put every region before its reader: broadcast, then select, both in parallel (S-HMARS 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hmars.errors import CallFailed
from hmars.fanout import fan_out
from hmars.model import DocumentIndex, Group, Progress, Region
from hmars.query.agents import (
    Broadcast,
    Guidance,
    QueryAgents,
    RegionSelection,
    Scope,
    SelectedPage,
    Selections,
)
from hmars.query.ledger import LedgerBook, RegionKey

OnProgress = Callable[[Progress], None]


@dataclass
class Counter:
    """Reports each finished item of a stage to whoever watches."""

    stage: str
    total: int
    on_progress: OnProgress | None
    done: int = 0

    def step(self, note: str = "") -> None:
        self.done += 1
        if self.on_progress is not None:
            self.on_progress(Progress(self.stage, self.done, self.total, note))


async def broadcast_all(
    question: str,
    scope: Scope,
    agents: QueryAgents,
    book: LedgerBook,
    *,
    workers: int,
    on_progress: OnProgress | None = None,
) -> dict[RegionKey, Guidance]:
    """Ask every mid-agent; give every region guidance, by default the question itself."""
    groups = list(scope.groups())
    counter = Counter("broadcast", len(groups), on_progress)

    async def ask(item: tuple[DocumentIndex, Group]) -> Broadcast:
        index, group = item
        try:
            broadcast = await agents.broadcaster.broadcast(question, index, group)
        except CallFailed as error:
            book.enter_broadcast_failure(index.document.id, group.index, error)
            broadcast = Broadcast(interpretation=question)
        counter.step()
        return broadcast

    broadcasts = await fan_out(groups, ask, workers=workers)
    guidance: dict[RegionKey, Guidance] = {}
    for (index, group), broadcast in zip(groups, broadcasts, strict=True):
        for number in group.regions:
            guidance[index.document.id, number] = Guidance(
                interpretation=broadcast.interpretation,
                hint=broadcast.hints.get(number, broadcast.interpretation),
            )
    return guidance


async def select_all(
    question: str,
    scope: Scope,
    agents: QueryAgents,
    guidance: Mapping[RegionKey, Guidance],
    book: LedgerBook,
    *,
    workers: int,
    on_progress: OnProgress | None = None,
) -> Selections:
    """Ask every region; each ends in the book exactly once, whatever happens to its call."""
    regions = list(scope.regions())
    counter = Counter("select", len(regions), on_progress)
    default = Guidance(interpretation=question, hint=question)

    async def ask(item: tuple[DocumentIndex, Region]) -> RegionSelection:
        index, region = item
        key = (index.document.id, region.index)
        selection = RegionSelection()
        if region.blank:
            book.enter(key, "abstained")
        else:
            try:
                selection = await agents.selector.select(
                    question, region, index.cards.get(region.index), guidance.get(key, default)
                )
                book.unknown(selection.unknown_pages)
                book.floored += selection.floored
            except CallFailed as error:
                book.enter_failure(key, error)
        counter.step()
        return selection

    answers = await fan_out(regions, ask, workers=workers)
    selections: Selections = {
        (index.document.id, region.index): selection
        for (index, region), selection in zip(regions, answers, strict=True)
    }
    if agents.cut is not None:
        selections = agents.cut(selections)
    for key, selection in selections.items():
        if key not in book.outcomes:
            book.enter(key, "selected" if selection.pages else "abstained")
    return selections


def select_everything(scope: Scope, book: LedgerBook) -> Selections:
    """The short-document bypass: every page with text is evidence, and the ledger says so."""
    book.read_whole = True
    selections: dict[RegionKey, RegionSelection] = {}
    for index, region in scope.regions():
        key = (index.document.id, region.index)
        pages = tuple(SelectedPage(page, 1.0) for page in region.pages if page.text.strip())
        selections[key] = RegionSelection(pages=pages)
        book.enter(key, "selected" if pages else "abstained")
    return selections
