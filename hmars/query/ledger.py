"""The ledger of one question while it is being asked (promise 2)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from hmars.errors import CallFailed
from hmars.model import Failure, Ledger
from hmars.query.agents import Scope

Outcome = Literal["selected", "abstained", "failed", "truncated", "skipped"]
UNREAD: tuple[Outcome, ...] = ("failed", "truncated", "skipped")
RegionKey = tuple[str, int]


@dataclass
class LedgerBook:
    """Takes down where each region ends; refuses to close while one is missing."""

    scope: Scope
    outcomes: dict[RegionKey, Outcome] = field(default_factory=dict[RegionKey, Outcome])
    failures: list[Failure] = field(default_factory=list[Failure])
    notes: list[str] = field(default_factory=list[str])
    unknown_pages: int = 0
    floored: int = 0
    """Pages scored although the model did not offer both yes and no."""
    read_whole: bool = False

    @property
    def unread(self) -> bool:
        """A region could not be read, so that what was not found may still be there."""
        return any(outcome in UNREAD for outcome in self.outcomes.values())

    def enter(self, key: RegionKey, outcome: Outcome) -> None:
        if key in self.outcomes:
            raise RuntimeError(f"region {key} ended twice: {self.outcomes[key]} and {outcome}")
        self.outcomes[key] = outcome

    def enter_failure(self, key: RegionKey, error: CallFailed) -> None:
        """A region whose call failed: cut replies and cut prompts are *truncated*; what the
        budget did not reach is *skipped*, which is what was asked for and no failure."""
        if error.problem == "budget":
            self.enter(key, "skipped")
            self.note_once(str(error))
            return
        self.enter(key, "truncated" if error.problem in ("length", "prompt_cut") else "failed")
        self.failures.append(
            Failure(
                stage="select",
                document=key[0],
                region=key[1],
                problem=error.problem,
                reason=str(error),
            )
        )

    def enter_broadcast_failure(self, document: str, group: int, error: CallFailed) -> None:
        """The group's regions are asked all the same, with the question as their hint."""
        if error.problem == "budget":
            self.note_once(str(error))
            return
        self.failures.append(
            Failure(
                stage="broadcast",
                document=document,
                group=group,
                problem=error.problem,
                reason=str(error),
            )
        )

    def note_once(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def unknown(self, warnings: tuple[str, ...]) -> None:
        self.unknown_pages += len(warnings)
        self.notes.extend(warnings)

    def close(self, *, pages_left_out: int = 0, rejected_quotes: int = 0) -> Ledger:
        expected = {(index.document.id, region.index) for index, region in self.scope.regions()}
        if expected != set(self.outcomes):
            lost = sorted(expected ^ set(self.outcomes))
            raise RuntimeError(f"regions without an outcome, or outcomes without a region: {lost}")
        counts = Counter(self.outcomes.values())
        if self.floored:
            self.notes.append(
                f"{self.floored} page scores rest on an incomplete list of alternatives: the model "
                "offered only one of yes and no."
            )
        return Ledger(
            regions=len(expected),
            selected=counts["selected"],
            abstained=counts["abstained"],
            failed=counts["failed"],
            truncated=counts["truncated"],
            skipped=counts["skipped"],
            failures=tuple(self.failures),
            read_whole=self.read_whole,
            pages_left_out=pages_left_out,
            unknown_pages=self.unknown_pages,
            rejected_quotes=rejected_quotes,
            regions_without_card=sum(
                region.index not in index.cards for index, region in self.scope.regions()
            ),
            notes=(*self.scope.notes, *self.notes),
        )
