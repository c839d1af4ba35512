"""The rounds of the lead (S-PARSER 3.2, algorithm 1), over the same memory as a single query.

Every turn of the lead is a round: it asks, it answers, or it does neither. All queries of a turn go
before every window at once. Depth comes from the question and width from the text: the time of a
question grows with its rounds, not with its windows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from hmars.errors import CallFailed
from hmars.model import Answer, Failure, Ledger, Progress, Round, Seconds, Usage
from hmars.query.agents import OnText, Scope
from hmars.query.consider import OnProgress
from hmars.query.lead.agents import Decision, LeadAgents, LeadAskSettings, Observation
from hmars.query.lead.asking import ask_round
from hmars.query.lead.concluding import Conclusion, conclude
from hmars.query.lead.inquiry import Inquiry, is_abstention
from hmars.query.lead.observe import error_text
from hmars.query.lead.rechecking import recheck
from hmars.query.lead.trajectory import Trajectory, record
from hmars.query.lead.windows import windows_of
from hmars.query.ledger import LedgerBook
from hmars.query.pipeline import Clock, with_caveats
from hmars.tokens import Tokenizer

FORMS = (
    "Your turn held neither a query nor an answer. Either ask a query or give the final answer, "
    "in the form you were told."
)
ANSWER_NOW = "Answer now, in the form you were told, with what has been found."
LAST_ROUND = f"No more queries can be asked. {ANSWER_NOW}"
SPENT = f"The budget is spent, so no more queries can be asked. {ANSWER_NOW}"
FULL = f"There is no room for more findings, so no more queries can be asked. {ANSWER_NOW}"


@dataclass(frozen=True)
class LeadResult:
    answer: Answer
    trajectory: Trajectory


async def ask_lead(
    question: str,
    scope: Scope,
    agents: LeadAgents,
    settings: LeadAskSettings,
    tokenizer: Tokenizer,
    *,
    usage: Callable[[], Mapping[str, Usage]] = dict,
    on_text: OnText | None = None,
    on_progress: OnProgress | None = None,
    clock: Clock = time.perf_counter,
) -> LeadResult:
    """Answer `question` in rounds from the documents of `scope`, with proof and cost.

    A failed reader or check never raises; a lead that fails ends the rounds, and so does a budget
    that is spent; what was found by then is answered from. All of it is in the ledger.

    Raises:
        CallFailed: the answering call itself failed.
        EndpointError: an endpoint cannot serve any call.
    """
    began = clock()
    inquiry = Inquiry(
        question=question,
        scope=scope,
        agents=agents,
        settings=settings,
        tokenizer=tokenizer,
        windows=windows_of(scope, agents.window_tokens),
        book=LedgerBook(scope),
        clock=clock,
        on_progress=on_progress,
    )
    if inquiry.windows:
        await _rounds(inquiry)
    else:
        inquiry.ending = "empty"
    rounds_done = clock()
    if on_progress is not None:
        on_progress(Progress("answer", 0, 1))
    conclusion = await conclude(inquiry, on_text)
    ledger = _ledger(inquiry, conclusion)
    ended = clock()
    answer = Answer(
        answer=_with_unread(inquiry, conclusion, ledger),
        abstained=conclusion.abstained,
        citations=conclusion.verified.citations,
        evidence=conclusion.evidence.spans,
        ledger=ledger,
        usage=dict(usage()),
        seconds=Seconds(
            broadcast=inquiry.hint_seconds,
            select=rounds_done - began - inquiry.hint_seconds,
            answer=ended - rounds_done,
            total=ended - began,
        ),
        rounds=tuple(
            item.model_copy(update={"findings": tuple(inquiry.judged(item.findings))})
            for item in inquiry.rounds
        ),
    )
    return LeadResult(answer, record(inquiry, answer))


async def _rounds(inquiry: Inquiry) -> None:
    """Let the lead take turns until its answer stands or a limit is reached."""
    lead = inquiry.agents.lead
    for number in range(1, inquiry.lead.max_rounds + 1):
        limit = _limit(inquiry, number)
        last = limit is not None
        if limit is not None:
            lead.tell({"budget": SPENT, "context": FULL, "rounds": LAST_ROUND}[limit])
        began = inquiry.clock()
        try:
            decision = await lead.decide()
        except CallFailed as error:
            _lead_failed(inquiry, error, began)
            return
        if decision.answer and not decision.calls:
            if await _answered(inquiry, decision.answer, began, last=last):
                inquiry.ending = "answered"
                return
        elif decision.calls and not last:
            inquiry.rounds.append(await ask_round(inquiry, number, decision, began))
        else:
            _useless(inquiry, decision, began, last=last)
        if limit is not None:
            inquiry.ending = limit
            return


def _limit(inquiry: Inquiry, number: int) -> Literal["budget", "context", "rounds"] | None:
    """Why this turn is the last, if it is."""
    settings = inquiry.lead
    if inquiry.spent:
        return "budget"
    if inquiry.agents.lead.tokens + settings.turn_room > settings.max_context_tokens:
        return "context"
    return "rounds" if number == settings.max_rounds else None


async def _answered(inquiry: Inquiry, answer: str, began: float, *, last: bool) -> bool:
    """Whether the answer stands. Refuted in the last round it is kept, but not relied on."""
    objection = "" if is_abstention(answer) else await recheck(inquiry)
    note = "the answer did not stand: a passage behind it is about another" if objection else ""
    inquiry.rounds.append(Round(note=note, seconds=inquiry.clock() - began))
    if objection and not last:
        inquiry.agents.lead.tell(objection, kind="observation")
        return False
    inquiry.conclusion = answer
    inquiry.contested = bool(objection)
    return True


def _lead_failed(inquiry: Inquiry, error: CallFailed, began: float) -> None:
    if error.problem == "budget":  # which is what was asked for and no failure
        inquiry.ending = "budget"
        inquiry.book.note_once(str(error))
        return
    inquiry.ending = "failed"
    inquiry.book.failures.append(Failure(stage="lead", problem=error.problem, reason=str(error)))
    inquiry.rounds.append(
        Round(invalid=True, note=f"no turn: {error}", seconds=inquiry.clock() - began)
    )


def _useless(inquiry: Inquiry, decision: Decision, began: float, *, last: bool) -> None:
    """A turn that cannot be used, or one that asks when nothing can be asked any more."""
    lead = inquiry.agents.lead
    if decision.calls:
        lead.observe(
            [Observation(error_text("No more queries can be asked."))] * len(decision.calls)
        )
    elif not last:
        lead.tell(FORMS)
    note = decision.problem or "asked again instead of answering"
    inquiry.rounds.append(Round(invalid=True, note=note, seconds=inquiry.clock() - began))


def _ledger(inquiry: Inquiry, conclusion: Conclusion) -> Ledger:
    # A mid-agent that fails for every query fails in the same words: one entry says it.
    inquiry.book.failures = list(dict.fromkeys(inquiry.book.failures))
    inquiry.reads.close_into(inquiry.book)
    if inquiry.reads.refusal:
        inquiry.book.note_once(inquiry.reads.refusal)
    inquiry.book.notes.extend(_notes(inquiry))
    rejected = sum(item.rejected_quotes for item in inquiry.rounds)
    return inquiry.book.close(
        pages_left_out=conclusion.evidence.left_out,
        rejected_quotes=rejected + conclusion.verified.rejected,
    )


def _notes(inquiry: Inquiry) -> list[str]:
    """What a reader of the ledger should know of the rounds."""
    notes = list(inquiry.agents.lead.notes)
    turns = len(inquiry.rounds)
    after = "1 round" if turns == 1 else f"{turns} rounds"
    ending = {
        "rounds": f"The lead gave no answer in {after}.",
        "context": f"The lead's context was full after {after}, and it gave no answer.",
        "budget": f"The budget was spent after {after}, and the lead gave no answer.",
        "failed": f"The lead's call failed in round {turns}; the answer rests on what was found.",
    }.get(inquiry.ending)
    left_out = sum(item.left_out for item in inquiry.rounds)
    refuted = sum(verdict == "mismatch" for verdict in inquiry.verdicts.values())
    counted = [
        (inquiry.reads.failed, f"of {inquiry.reads.total} readings failed."),
        (inquiry.reads.skipped, f"of {inquiry.reads.total} readings were left out for the budget."),
        (left_out, "findings did not fit what the lead was told."),
        (refuted, "quotations are about another than is meant and were left out."),
        (inquiry.unchecked, "quotations could not be checked for whom they are about."),
    ]
    notes += [ending] if ending else []
    notes += [f"{count} {words}" for count, words in counted if count]
    if inquiry.contested:
        notes.append("The lead's last answer rests on a passage about another; it is no draft.")
    return notes


def _with_unread(inquiry: Inquiry, conclusion: Conclusion, ledger: Ledger) -> str:
    """The answer's text with its caveats; a region that was selected may hide what was not read."""
    reads = inquiry.reads
    unread: list[str] = []
    if reads.failed and not (ledger.failed or ledger.truncated):
        unread.append(f"{reads.failed} of {reads.total} readings failed")
    if reads.skipped:
        # What was not reached are readings: for other queries their regions were read.
        ledger = ledger.model_copy(update={"skipped": 0})
        unread.append(f"{reads.skipped} of {reads.total} readings were left out for the budget")
    elif inquiry.ending == "budget" and not ledger.skipped:
        unread.append("the budget was spent before the lead came to an answer")
    text = with_caveats(conclusion.verified, ledger, conclusion.abstained)
    for words in unread:
        text += f"\n\nNote: {words}; this answer may be incomplete."
    return text
