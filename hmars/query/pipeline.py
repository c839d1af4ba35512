"""Ask one question of a scope: broadcast, select, evidence, answer (S-HMARS 3.2, query phase).

Reads the hierarchy it is given and writes nothing. The same code runs for model-driven and for
deterministic agents.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from hmars.model import Answer, Ledger, Progress, Seconds, Usage
from hmars.query.agents import OnText, QueryAgents, Scope, Selections
from hmars.query.citations import VerifiedAnswer, verify
from hmars.query.consider import (
    OnProgress,
    broadcast_all,
    select_all,
    select_everything,
)
from hmars.query.evidence import Evidence, assemble
from hmars.query.ledger import LedgerBook
from hmars.tokens import Tokenizer

NOT_IN_DOCUMENT = "The answer is not in the document."
NOT_IN_WHAT_WAS_READ = "The answer is not in what could be read."
NOTHING_INDEXED = "Nothing is indexed here yet, so there is nothing to answer from."

Clock = Callable[[], float]


@dataclass(frozen=True)
class AskSettings:
    """What a question needs of a profile; tokens are those of the declared tokenizer."""

    max_evidence_tokens: int
    read_all_below: int = 0
    workers: int = 16


async def ask(
    question: str,
    scope: Scope,
    agents: QueryAgents,
    settings: AskSettings,
    tokenizer: Tokenizer,
    *,
    usage: Callable[[], Mapping[str, Usage]] = dict,
    on_text: OnText | None = None,
    on_progress: OnProgress | None = None,
    clock: Clock = time.perf_counter,
) -> Answer:
    """Answer `question` from the documents of `scope`, with proof and cost.

    Raises:
        CallFailed: the answering call itself failed; a failed region never raises.
        EndpointError: an endpoint cannot serve any call.
    """
    began = clock()
    book = LedgerBook(scope)
    limit = min(settings.read_all_below, settings.max_evidence_tokens)
    broadcast_done = selected_at = began
    if scope.indexes and scope.tokens <= limit:
        selections: Selections = select_everything(scope, book)
    else:
        workers = settings.workers
        guidance = await broadcast_all(
            question, scope, agents, book, workers=workers, on_progress=on_progress
        )
        broadcast_done = clock()
        selections = await select_all(
            question, scope, agents, guidance, book, workers=workers, on_progress=on_progress
        )
        selected_at = clock()
    divide = partial(agents.divide, question) if agents.divide is not None else None
    evidence = assemble(scope, selections, settings.max_evidence_tokens, tokenizer, divide)
    if on_progress is not None:
        on_progress(Progress("answer", 0, 1))
    absent = NOT_IN_WHAT_WAS_READ if book.unread else NOT_IN_DOCUMENT
    abstained, verified = await _answer(question, scope, agents, evidence, on_text, absent)
    ledger = book.close(pages_left_out=evidence.left_out, rejected_quotes=verified.rejected)
    ended = clock()
    return Answer(
        answer=with_caveats(verified, ledger, abstained),
        abstained=abstained,
        citations=verified.citations,
        evidence=evidence.spans,
        ledger=ledger,
        usage=dict(usage()),
        seconds=Seconds(
            broadcast=broadcast_done - began,
            select=selected_at - broadcast_done,
            answer=ended - selected_at,
            total=ended - began,
        ),
    )


def timed(answer: Answer, began: float, clock: Clock = time.perf_counter) -> Answer:
    """The answer with a total that counts from `began`, so with what was loaded before the question
    was put."""
    seconds = answer.seconds.model_copy(update={"total": clock() - began})
    return answer.model_copy(update={"seconds": seconds})


async def _answer(
    question: str,
    scope: Scope,
    agents: QueryAgents,
    evidence: Evidence,
    on_text: OnText | None,
    absent: str,
) -> tuple[bool, VerifiedAnswer]:
    """The verified answer, and whether it is an abstention. Without evidence nobody is asked."""
    if not evidence.blocks:
        text = absent if scope.indexes else NOTHING_INDEXED
        return True, VerifiedAnswer(text, (), 0)
    draft = await agents.answerer.answer(question, evidence.blocks, on_text)
    verified = verify(draft, evidence.blocks, scope)
    if draft.abstained:
        return True, VerifiedAnswer(verified.text or absent, (), verified.rejected)
    return False, verified


def with_caveats(verified: VerifiedAnswer, ledger: Ledger, abstained: bool) -> str:
    """The answer's text, saying what was not read and what could not be verified."""
    parts = [verified.text]
    unread = ledger.failed + ledger.truncated + ledger.skipped
    if unread:
        kinds = [
            f"{count} {name}"
            for count, name in (
                (ledger.failed, "failed"),
                (ledger.truncated, "truncated"),
                (ledger.skipped, "skipped"),
            )
            if count
        ]
        parts.append(
            f"Note: {unread} of {ledger.regions} regions could not be read "
            f"({', '.join(kinds)}); this answer may be incomplete."
        )
    if not abstained and not verified.citations:
        parts.append("Note: no quotation in support of this answer could be verified.")
    return "\n\n".join(parts)
