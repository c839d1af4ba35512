"""One round in which the lead asks: hints, scatter, gather, tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hmars.fanout import fan_out
from hmars.model import Finding, Round
from hmars.prompts import one_line
from hmars.query.consider import Counter, broadcast_all
from hmars.query.lead.agents import Decision, Observation
from hmars.query.lead.inquiry import Asked, Inquiry
from hmars.query.lead.observe import (
    Gathered,
    error_text,
    facts_of,
    merged,
    observation,
    repeated_text,
    twice_text,
)
from hmars.query.lead.scatter import Order, normal, scatter


@dataclass(frozen=True)
class Plan:
    """What becomes of each call of a turn: put before readers, or answered with a word."""

    orders: tuple[Order, ...]
    steps: tuple[int | str, ...]
    """For each call, the number of its order or what is said instead."""


async def ask_round(inquiry: Inquiry, number: int, decision: Decision, began: float) -> Round:
    """Put the turn's queries before the readers, all at once, and tell the lead what came back.

    Raises:
        EndpointError: an endpoint cannot serve any call.
    """
    plan = _planned(inquiry, number, decision)
    orders = await _guided(inquiry, plan.orders)
    readers = sum(len(order.windows) for order in orders)
    gathered = await scatter(
        orders,
        inquiry.agents.reader,
        inquiry.reads,
        workers=inquiry.settings.workers,
        progress=Counter(f"round {number}", readers, inquiry.on_progress),
    )
    observations, left_out = _observed(inquiry, plan, gathered)
    inquiry.agents.lead.observe(observations)
    shown = [finding for seen in observations for finding in seen.findings]
    inquiry.told.extend(shown)
    for item in gathered:
        inquiry.found.extend(item.findings)
        inquiry.asked[normal(item.query)].findings += len(merged(item.findings))
    return Round(
        queries=tuple(call.query for call in decision.calls if call.query),
        findings=tuple(shown),
        invalid=not any(call.query for call in decision.calls),
        note=" ".join(call.error for call in decision.calls if call.error),
        readers=readers,
        failed_readers=sum(item.failed for item in gathered),
        skipped_readers=sum(item.skipped for item in gathered),
        rejected_quotes=sum(item.rejected for item in gathered),
        left_out=left_out,
        seconds=inquiry.clock() - began,
    )


def _planned(inquiry: Inquiry, number: int, decision: Decision) -> Plan:
    facts = facts_of(inquiry.judged(inquiry.told)) if inquiry.lead.share_facts else ()
    orders: list[Order] = []
    steps: list[int | str] = []
    for call in decision.calls:
        step = error_text(call.error) if call.error else _refusal(inquiry, call.query, orders)
        if step is not None:
            steps.append(step)
            continue
        windows = tuple(inquiry.windows)
        if inquiry.earlier(call.query) is not None:
            failed = inquiry.reads.failed_windows(call.query)
            windows = tuple(window for window in windows if window.agent in failed)
        else:
            inquiry.asked[normal(call.query)] = Asked(number)
        steps.append(len(orders))
        orders.append(Order(call.query, windows, facts))
    return Plan(tuple(orders), tuple(steps))


def _refusal(inquiry: Inquiry, query: str, orders: Sequence[Order]) -> str | None:
    """Why a query is not put (again). One whose readers failed is put to those once more."""
    if any(normal(order.query) == normal(query) for order in orders):
        return twice_text()
    earlier = inquiry.earlier(query)
    if earlier is not None and not inquiry.reads.failed_windows(query):
        return repeated_text(earlier.round, earlier.findings)
    if len(orders) >= inquiry.lead.max_queries:
        most = inquiry.lead.max_queries
        return error_text(f"Only {most} queries of one turn are put; ask this one in the next.")
    return None


async def _guided(inquiry: Inquiry, orders: Sequence[Order]) -> list[Order]:
    """The orders with the hints of the mid-agents; queries of one turn do not wait in line."""
    guide = inquiry.agents.guide
    if guide is None:
        return list(orders)
    began = inquiry.clock()

    async def guided(order: Order) -> Order:
        guidance = await broadcast_all(
            order.query,
            inquiry.scope,
            guide,
            inquiry.book,
            workers=inquiry.settings.workers,
            on_progress=inquiry.on_progress,
        )
        return replace(order, guidance=guidance)

    made = await fan_out(orders, guided, workers=max(1, len(orders)))
    inquiry.hint_seconds += inquiry.clock() - began
    return made


def _observed(
    inquiry: Inquiry, plan: Plan, gathered: Sequence[Gathered]
) -> tuple[list[Observation], int]:
    """One observation for each call, within the budget of the turn."""
    budget = inquiry.lead.max_observation_tokens // max(1, len(gathered))
    place = _places(inquiry)
    left_out = 0
    observations: list[Observation] = []
    for step in plan.steps:
        if isinstance(step, str):
            observations.append(Observation(step))
            continue
        seen, dropped = observation(gathered[step], budget, inquiry.tokenizer.count, place)
        observations.append(seen)
        left_out += dropped
    return observations, left_out


def _places(inquiry: Inquiry) -> Callable[[Finding], Mapping[str, str]]:
    """What tells findings of one name apart: the document, and the heading or date of the page."""
    titles = {index.document.id: index.document.title for index in inquiry.scope.indexes}
    contexts = {
        (index.document.id, page.index): page.context
        for index in inquiry.scope.indexes
        for page in index.pages
        if page.context
    }

    def place(finding: Finding) -> dict[str, str]:
        made: dict[str, str] = {}
        if len(titles) > 1:
            made["document"] = one_line(titles[finding.document], 80)
        context = contexts.get((finding.document, finding.page))
        if context:
            made["in"] = one_line(context, 80)
        return made

    return place
