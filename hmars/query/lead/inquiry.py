"""One question while the lead works on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hmars.model import Finding, Round, Verdict
from hmars.query.agents import Scope
from hmars.query.consider import OnProgress
from hmars.query.lead.agents import LeadAgents, LeadAskSettings, Window
from hmars.query.lead.observe import folded
from hmars.query.lead.scatter import ReadBook, normal
from hmars.query.ledger import LedgerBook
from hmars.query.pipeline import Clock
from hmars.settings import LeadSettings
from hmars.tokens import Tokenizer

Ending = Literal["answered", "rounds", "context", "budget", "failed", "empty"]
"""Why the rounds ended; `rounds`, `context`, `budget`: the limit was reached without an answer."""

ABSTENTIONS = frozenset(
    {
        "not in the document",
        "not in the documents",
        "not in the text",
        "unknown",
        "no answer",
        "no answer found",
        "not found",
        "information not available",
    }
)
"""What a lead writes when it means that there is no answer."""


@dataclass
class Asked:
    """A query of an earlier round."""

    round: int
    findings: int = 0


@dataclass
class Inquiry:
    """Everything the rounds of one question have come to so far."""

    question: str
    scope: Scope
    agents: LeadAgents
    settings: LeadAskSettings
    tokenizer: Tokenizer
    windows: Sequence[Window]
    book: LedgerBook
    clock: Clock
    on_progress: OnProgress | None = None
    reads: ReadBook = field(default_factory=ReadBook)
    rounds: list[Round] = field(default_factory=list[Round])
    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])
    """By `normal(query)`."""
    told: list[Finding] = field(default_factory=list[Finding])
    """Findings the lead has seen, in the order it has seen them."""
    found: list[Finding] = field(default_factory=list[Finding])
    """All findings with a verified quotation, also those that no observation had room for."""
    verdicts: dict[tuple[str, int, int], Verdict] = field(
        default_factory=dict[tuple[str, int, int], Verdict]
    )
    unchecked: int = 0
    """Quotations that could not be checked, because the check failed or there were too many."""
    conclusion: str = ""
    contested: bool = False
    """The conclusion was refuted in the last round and could not be thought over."""
    ending: Ending = "rounds"
    hint_seconds: float = 0.0

    @property
    def lead(self) -> LeadSettings:
        return self.settings.lead

    @property
    def concluded(self) -> bool:
        """The lead came to an answer that says something."""
        return bool(self.conclusion) and not is_abstention(self.conclusion)

    def judged(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings with what the verify rounds have said of them.

        A copy of a refuted passage elsewhere, which nobody has looked at, shares its fate: the two
        were told as one.
        """
        refuted = {
            folded(item.quote)
            for item in self.told
            if self.verdicts.get(place_of(item)) == "mismatch"
        }
        return [
            finding.model_copy(update={"verdict": self._verdict(finding, refuted)})
            for finding in findings
        ]

    def _verdict(self, finding: Finding, refuted: set[str]) -> Verdict:
        known = self.verdicts.get(place_of(finding))
        if known is None and folded(finding.quote) in refuted:
            return "mismatch"
        return known or "unchecked"

    def standing(self) -> list[Finding]:
        """All findings but the refuted ones."""
        return [item for item in self.judged(self.found) if item.verdict != "mismatch"]

    @property
    def spent(self) -> bool:
        """The budget did not reach for a reading, or for a turn of the lead."""
        return bool(self.reads.refused) or self.ending == "budget"

    def earlier(self, query: str) -> Asked | None:
        return self.asked.get(normal(query))


def place_of(finding: Finding) -> tuple[str, int, int]:
    return finding.document, finding.start, finding.end


def is_abstention(conclusion: str) -> bool:
    return conclusion.strip(" .!\n\"'").casefold() in ABSTENTIONS
