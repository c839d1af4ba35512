"""The verify round: before an answer stands, each quotation behind it is checked in its page."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from hmars.errors import CallFailed
from hmars.fanout import fan_out
from hmars.model import Failure, Finding, Page
from hmars.prompts import defuse
from hmars.query.lead.agents import Check, Checked, Verifier
from hmars.query.lead.inquiry import Inquiry, place_of
from hmars.query.lead.observe import facts_of

LONGEST_QUOTE = 300


async def recheck(inquiry: Inquiry) -> str:
    """Check what the lead has been told and nobody has checked yet.

    Returns what the lead must know of quotations that are about somebody or something else; empty
    where the answer may stand. A check that fails, or that the budget does not reach, refutes
    nothing and is counted.

    Raises:
        EndpointError: the readers' endpoint cannot serve any call.
    """
    verifier = inquiry.agents.verifier
    if verifier is None or not inquiry.lead.verify:
        return ""
    due = _due(inquiry)
    inquiry.unchecked += max(0, len(due) - inquiry.lead.max_verified)
    due = due[: inquiry.lead.max_verified]
    checked = await _checked(inquiry, verifier, due)
    wrong: list[str] = []
    for finding, result in zip(due, checked, strict=True):
        if result is None:
            inquiry.unchecked += 1
            continue
        inquiry.verdicts[place_of(finding)] = result.verdict
        if result.verdict == "mismatch":
            wrong.append(_mismatch(finding, result))
    if not wrong:
        return ""
    return "\n".join(
        [
            "Before your answer stands, the passages behind it were checked in their pages. "
            "These are about somebody or something else than is meant:",
            *wrong,
            "Leave them out. Ask again with marks that tell the right one apart, or give the "
            "answer that the other findings support.",
        ]
    )


def _due(inquiry: Inquiry) -> list[Finding]:
    """Told and not judged, one for each stretch of text, the most confident first."""
    due: dict[tuple[str, int, int], Finding] = {}
    for finding in inquiry.told:
        place = place_of(finding)
        if place not in inquiry.verdicts:
            due.setdefault(place, finding)
    return sorted(due.values(), key=lambda item: (-item.confidence, item.agent, item.start))


async def _checked(
    inquiry: Inquiry, verifier: Verifier, due: Sequence[Finding]
) -> list[Checked | None]:
    pages = {index.document.id: index.pages for index in inquiry.scope.indexes}
    told = inquiry.judged(inquiry.told)

    async def check(finding: Finding) -> Checked | None:
        others = [item for item in told if place_of(item) != place_of(finding)]
        page = page_at(pages, finding)
        try:
            return await verifier.check(Check(inquiry.question, finding, page, facts_of(others)))
        except CallFailed as error:
            if error.problem == "budget":
                inquiry.book.note_once(str(error))
                return None
            inquiry.book.failures.append(
                Failure(
                    stage="verify",
                    document=finding.document,
                    region=finding.region,
                    problem=error.problem,
                    reason=str(error),
                )
            )
            return None

    return await fan_out(due, check, workers=inquiry.settings.workers)


def page_at(pages: Mapping[str, Sequence[Page]], finding: Finding) -> Page:
    of_document = pages[finding.document]
    return of_document[bisect_right(of_document, finding.start, key=lambda page: page.start) - 1]


def _mismatch(finding: Finding, result: Checked) -> str:
    quote = " ".join(defuse(finding.quote).split())
    shown = quote if len(quote) <= LONGEST_QUOTE else quote[: LONGEST_QUOTE - 1] + "…"
    about = f" is about {result.about}" if result.about else " is about another"
    why = f" ({result.why})" if result.why else ""
    return f'- agent_{finding.agent}, page {finding.page}: "{shown}"{about}{why}'
