"""From findings to an answer: the answer model over their pages, or the lead's own words.

Either way every citation is a quotation verified in the text, and without evidence nobody answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hmars.llm.numbers import local_number
from hmars.model import Finding, Page
from hmars.prompts import PromptedModel, one_line
from hmars.query.agents import (
    Draft,
    EvidenceBlock,
    OnText,
    Quote,
    RegionSelection,
    Scope,
    SelectedPage,
)
from hmars.query.citations import VerifiedAnswer, verify
from hmars.query.evidence import Evidence, assemble
from hmars.query.lead.inquiry import Inquiry
from hmars.query.ledger import RegionKey
from hmars.query.model_agents import AnswerReply, render_evidence
from hmars.query.pipeline import NOT_IN_DOCUMENT, NOT_IN_WHAT_WAS_READ, NOTHING_INDEXED
from hmars.query.streaming import AnswerStream

NO_DRAFT = "(none)"
LONGEST_DRAFT = 4_000


@dataclass(frozen=True)
class Conclusion:
    abstained: bool
    verified: VerifiedAnswer
    evidence: Evidence


@dataclass(frozen=True)
class DraftedAnswerer:
    """The answer model with the lead's conclusion as a draft, after the evidence."""

    model: PromptedModel
    draft: str

    async def answer(
        self, question: str, evidence: Sequence[EvidenceBlock], on_text: OnText | None = None
    ) -> Draft:
        reply = await self.model.ask(
            AnswerReply,
            documents=tuple(dict.fromkeys(block.document for block in evidence)),
            on_text=AnswerStream(on_text).feed if on_text else None,
            evidence=render_evidence(evidence),
            question=question,
            draft=one_line(self.draft, LONGEST_DRAFT) or NO_DRAFT,
        )
        quotes = tuple(
            Quote(local_number(item.evidence, len(evidence)) or 0, item.quote)
            for item in reply.citations
        )
        return Draft(
            answer=reply.answer.strip(),
            abstained=not reply.answerable,
            quotes=quotes if reply.answerable else (),
        )


async def conclude(inquiry: Inquiry, on_text: OnText | None) -> Conclusion:
    """The answer over the union of pages with findings that stand, in the order of the text.

    Raises:
        CallFailed, EndpointError: the answering call failed.
    """
    standing = inquiry.standing()
    selections = select_pages(inquiry.scope, standing)
    limit = inquiry.settings.max_evidence_tokens
    evidence = assemble(inquiry.scope, selections, limit, inquiry.tokenizer)
    if not evidence.blocks:
        return Conclusion(True, VerifiedAnswer(_without_evidence(inquiry), (), 0), evidence)
    # Where the budget ended the rounds, the answering call that it keeps is made in any case.
    if inquiry.lead.answer_from == "lead" and (inquiry.conclusion or not inquiry.spent):
        return _own_words(inquiry, standing, evidence)
    trusted = inquiry.concluded and not inquiry.contested
    answerer = inquiry.agents.answerer(inquiry.conclusion if trusted else "")
    draft = await answerer.answer(inquiry.question, evidence.blocks, on_text)
    verified = verify(draft, evidence.blocks, inquiry.scope)
    if draft.abstained:
        text = verified.text or _without_evidence(inquiry)
        verified = VerifiedAnswer(text, (), verified.rejected)
    return Conclusion(draft.abstained, verified, evidence)


def _without_evidence(inquiry: Inquiry) -> str:
    """Only who has read everything can say that it is not there."""
    if not inquiry.scope.indexes:
        return NOTHING_INDEXED
    if inquiry.spent:
        return NOT_IN_WHAT_WAS_READ if inquiry.reads.asked else SPENT_FIRST
    return NOT_IN_WHAT_WAS_READ if inquiry.reads.failures else NOT_IN_DOCUMENT


def _own_words(inquiry: Inquiry, standing: Sequence[Finding], evidence: Evidence) -> Conclusion:
    """The lead's conclusion, cited with the findings it was told and that stand."""
    if not inquiry.concluded:
        text = NOT_IN_DOCUMENT if inquiry.conclusion else NO_ANSWER.format(len(inquiry.rounds))
        return Conclusion(True, VerifiedAnswer(text, (), 0), evidence)
    told = {(item.document, item.start, item.end) for item in inquiry.told}
    quotes = tuple(
        Quote(0, item.quote) for item in standing if (item.document, item.start, item.end) in told
    )
    draft = Draft(inquiry.conclusion, False, quotes)
    verified = verify(draft, evidence.blocks, inquiry.scope)
    numbers = sorted({citation.number for citation in verified.citations})
    marks = f" [{', '.join(map(str, numbers))}]" if numbers else ""
    return Conclusion(False, replace(verified, text=verified.text + marks), evidence)


SPENT_FIRST = "The budget of this run was spent before anything was read."
NO_ANSWER = "The lead came to no answer in {} rounds."


def select_pages(scope: Scope, findings: Sequence[Finding]) -> dict[RegionKey, RegionSelection]:
    """Each page with findings, as sure as its best one; its passages are their paragraphs."""
    by_page: dict[tuple[str, int], list[Finding]] = {}
    for finding in findings:
        by_page.setdefault((finding.document, finding.page), []).append(finding)
    selections: dict[RegionKey, RegionSelection] = {}
    for index, region in scope.regions():
        pages = tuple(
            _selected(page, found)
            for page in region.pages
            if (found := by_page.get((index.document.id, page.index)))
        )
        selections[index.document.id, region.index] = RegionSelection(pages)
    return selections


def _selected(page: Page, findings: Sequence[Finding]) -> SelectedPage:
    best: dict[tuple[int, int], float] = {}
    for finding in findings:
        passage = paragraph(page, finding.start, finding.end)
        best[passage] = max(best.get(passage, 0.0), finding.confidence)
    ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    return SelectedPage(
        page=page,
        confidence=ranked[0][1],
        passages=tuple(passage for passage, _ in ranked),
        weights=tuple(weight for _, weight in ranked),
    )


def paragraph(page: Page, start: int, end: int) -> tuple[int, int]:
    """The paragraphs of the page that a stretch of the document touches, as document offsets."""
    local, stop = start - page.start, min(end, page.end) - page.start
    before = page.text.rfind("\n\n", 0, local)
    after = page.text.find("\n\n", stop)
    first = 0 if before < 0 else before + 2
    last = len(page.text) if after < 0 else after + 2
    return page.start + first, page.start + last
