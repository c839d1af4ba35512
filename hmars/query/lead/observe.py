"""What the lead is told of what was found (S-PARSER 3.1, gathering), within its budget.

The form is the one the published lead was trained on: a JSON object of `agent_N` entries with
`evidence` and `answer`, or one sentence where nobody found anything. Added are the page, and words
on readers that failed and findings that did not fit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hmars.model import Finding
from hmars.prompts import defuse
from hmars.query.lead.agents import Observation

NOTHING = "No agent found anything for this query."
ADVICE = "Rephrase it, make it simpler, or split it into smaller queries."
LONGEST_FACT = 240
MOST_FACTS = 16


@dataclass(frozen=True, slots=True)
class Gathered:
    """What came of one query: findings with verified quotations, how many readers failed, and how
    many the budget did not reach."""

    query: str
    findings: tuple[Finding, ...] = ()
    readers: int = 0
    failed: int = 0
    skipped: int = 0
    rejected: int = 0


def merged(findings: Sequence[Finding]) -> list[Finding]:
    """One finding for each stretch of text or equal wording, the most confident; order kept.

    A quotation inside another with the same answer adds nothing; nor does the same sentence in a
    second copy of the text.
    """
    kept: list[Finding] = []
    for finding in sorted(findings, key=lambda item: (-item.confidence, item.agent, item.start)):
        if not any(_same(finding, other) for other in kept):
            kept.append(finding)
    return sorted(kept, key=lambda item: (item.agent, item.start))


def _same(finding: Finding, other: Finding) -> bool:
    if folded(finding.quote) == folded(other.quote):
        return True
    one_place = (
        finding.document == other.document
        and finding.start < other.end
        and other.start < finding.end
    )
    return one_place and folded(finding.answer) == folded(other.answer)


def folded(text: str) -> str:
    """Equal for texts that differ in case and white space only."""
    return " ".join(text.casefold().split())


def observation(
    gathered: Gathered,
    budget_tokens: int,
    count: Callable[[str], int],
    place: Callable[[Finding], Mapping[str, str]] = lambda finding: {},
) -> tuple[Observation, int]:
    """The tool result for one query, and how many findings did not fit it.

    The least confident go first; what is told never exceeds `budget_tokens`, unless the single
    best finding alone does. `place` says what else the lead should know of where a finding stands.
    """
    ranked = sorted(
        merged(gathered.findings), key=lambda item: (-item.confidence, item.agent, item.start)
    )
    total = len(ranked)
    if not ranked:
        return Observation(_nothing(gathered)), 0
    fitting = total
    text = _told(gathered, ranked, 0, place)
    while fitting > 1 and count(text) > budget_tokens:
        # Near the right size at once, then one by one: findings are of similar length.
        share = int(fitting * budget_tokens / count(text))
        fitting = min(fitting - 1, max(1, share))
        text = _told(gathered, ranked[:fitting], total - fitting, place)
    told = sorted(ranked[:fitting], key=lambda item: (item.agent, item.start))
    return Observation(text, tuple(told)), total - fitting


def _told(
    gathered: Gathered,
    findings: Sequence[Finding],
    left_out: int,
    place: Callable[[Finding], Mapping[str, str]],
) -> str:
    entries: dict[str, Any] = {}
    for finding in sorted(findings, key=lambda item: (item.agent, item.start)):
        name = f"agent_{finding.agent}"
        further = 2
        while name in entries:
            name = f"agent_{finding.agent}.{further}"
            further += 1
        entries[name] = {
            "page": finding.page,
            **place(finding),
            "evidence": defuse(finding.quote),
            "answer": defuse(finding.answer),
        }
    if left_out:
        entries["left_out"] = f"{left_out} less certain findings did not fit; ask more narrowly."
    if gathered.failed:
        entries["failed"] = failed_text(gathered)
    if gathered.skipped:
        entries["not_asked"] = skipped_text(gathered)
    return json.dumps(entries, ensure_ascii=False)


def _nothing(gathered: Gathered) -> str:
    if gathered.skipped:
        words = [skipped_text(gathered), failed_text(gathered) if gathered.failed else ""]
        return f"{NOTHING} But {' '.join(word for word in words if word)}"
    if gathered.failed == gathered.readers and gathered.failed:
        return f"No agent could be asked: {failed_text(gathered)}"
    if gathered.failed:
        return f"{NOTHING} But {failed_text(gathered)} {ADVICE}"
    return f"{NOTHING} {ADVICE}"


def failed_text(gathered: Gathered) -> str:
    """Failed readers in words, so that they are not taken for readers that found nothing."""
    return (
        f"{gathered.failed} of {gathered.readers} readers failed: what their parts of the text say "
        "is not known. The same query asks them once more."
    )


def skipped_text(gathered: Gathered) -> str:
    return (
        f"{gathered.skipped} of {gathered.readers} readers were not asked, because the budget is "
        "spent: what their parts of the text say is not known."
    )


def repeated_text(round_number: int, found: int) -> str:
    what = f"{found} findings, given there" if found else "nothing"
    return f"You asked this in round {round_number} already; it found {what}. {ADVICE}"


def twice_text() -> str:
    return "You asked this twice in one turn; see the other result."


def error_text(problem: str) -> str:
    return json.dumps({"error": problem}, ensure_ascii=False)


def facts_of(findings: Sequence[Finding], *, without: Finding | None = None) -> tuple[str, ...]:
    """What is known so far, one line each: the latest, at most `MOST_FACTS`, in order of finding.

    What a verify round has refuted is no fact.
    """
    facts = [
        fact_of(finding)
        for finding in findings
        if finding.verdict != "mismatch" and finding != without
    ]
    return tuple(dict.fromkeys(facts))[-MOST_FACTS:]


def fact_of(finding: Finding) -> str:
    quote = " ".join(defuse(finding.quote).split())
    if len(quote) > LONGEST_FACT:
        quote = quote[: LONGEST_FACT - 1] + "…"
    answer = " ".join(defuse(finding.answer).split())
    return f"{quote} ({answer})" if answer and answer not in quote else quote
