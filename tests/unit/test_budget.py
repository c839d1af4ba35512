"""Budgets: money, calls and time of one run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hmars.errors import CallFailed, ConfigError
from hmars.llm.budget import Budget, Spending, cost_of, total_cost
from hmars.llm.contract import ChatReply, ChatRequest, Message, PromptRef
from hmars.llm.fake import FakeModel
from hmars.model import Role, Usage
from hmars.settings import PriceSettings, Profile

PROMPT = PromptRef("p", 1, "0" * 64)
ROLES: tuple[Role, ...] = ("select", "answer")
PRICE = {"input": 2.0, "cached": 0.5, "output": 10.0}


def profile(price: dict[str, float] | None = PRICE) -> Profile:
    role: dict[str, Any] = {"endpoint": "e", "model": "m", "max_tokens": 100, "price": price}
    return Profile.model_validate(
        {
            "endpoints": {"e": {"base_url": "http://127.0.0.1:1/v1"}},
            "roles": dict.fromkeys(ROLES, role),
            "answer": {"max_prompt_tokens": 300},
        }
    )


def request(role: Role = "select") -> ChatRequest:
    return ChatRequest(role, (Message("user", "q"),), PROMPT, prompt_tokens=1000)


def reply(usage: Usage) -> ChatReply:
    return ChatReply(text="x", usage=usage)


async def outcomes(spending: Spending, model: FakeModel, count: int) -> list[str]:
    asked = spending.wrap(model)

    async def one() -> str:
        try:
            await asked.complete(request())
        except CallFailed as error:
            return error.problem
        return "ok"

    async with asyncio.TaskGroup() as tasks:
        made = [tasks.create_task(one()) for _ in range(count)]
    return [task.result() for task in made]


def test_money_counts_cached_tokens_at_their_own_price() -> None:
    usage = Usage(calls=1, prompt_tokens=1000, cached_tokens=400, completion_tokens=50)
    assert cost_of(usage, PriceSettings(**PRICE)) == pytest.approx((600 * 2 + 200 + 500) / 1e6)
    assert cost_of(usage, PriceSettings(input=2, output=0)) == pytest.approx(2000 / 1e6)
    assert total_cost({"select": usage, "card": usage}, profile()) is None


async def test_calls_stop_at_the_limit_and_one_is_kept_for_the_answer() -> None:
    spending = Spending(Budget(max_calls=5), profile(), ROLES)
    model = FakeModel(lambda _: reply(Usage(calls=1)))
    found = await outcomes(spending, model, 9)
    assert sorted(found) == ["budget"] * 5 + ["ok"] * 4
    await spending.wrap(model).complete(request("answer"))
    assert len(model.requests) == 5


async def test_replies_from_the_cache_leave_the_budget_to_others() -> None:
    spending = Spending(Budget(max_calls=3), profile(), ROLES)
    model = FakeModel(lambda _: reply(Usage(calls=0)))
    assert await outcomes(spending, model, 9) == ["ok"] * 9


async def test_money_is_never_passed_and_replies_shorter_than_feared_leave_room() -> None:
    one = Usage(calls=1, prompt_tokens=1000, completion_tokens=10)
    each = cost_of(one, PriceSettings(**PRICE))
    kept = cost_of(Usage(prompt_tokens=1000, completion_tokens=100), PriceSettings(**PRICE))
    limit = kept + 6.5 * each
    spending = Spending(Budget(max_cost=limit), profile(), ROLES)
    found = await outcomes(spending, FakeModel(lambda _: reply(one)), 20)
    assert found.count("ok") == 6


async def test_a_short_text_keeps_less_for_its_answer_and_a_refusal_says_how_much() -> None:
    one = Usage(calls=1, prompt_tokens=1000, completion_tokens=10)
    limit = cost_of(one, PriceSettings(**PRICE)) + 0.0027
    model = FakeModel(lambda _: reply(one))
    long = Spending(Budget(max_cost=limit), profile(), ROLES)
    short = Spending(Budget(max_cost=limit), profile(), ROLES, evidence_tokens=10)
    with pytest.raises(CallFailed, match=r"of which 0\.0030 is kept for the answer"):
        await long.wrap(model).complete(request())
    with pytest.raises(CallFailed, match=r"of which 0\.0024 is kept for the answer"):
        await short.wrap(model).complete(request())
    roomy = Spending(Budget(max_cost=limit + 0.001), profile(), ROLES, evidence_tokens=10)
    await roomy.wrap(model).complete(request())


async def test_time_that_is_over_refuses_without_asking() -> None:
    now = [0.0]
    spending = Spending(Budget(max_seconds=10), profile(), ROLES, clock=lambda: now[0])
    model = FakeModel(lambda _: reply(Usage(calls=1)))
    now[0] = 8.5  # the last fifth is the answer's
    assert await outcomes(spending, model, 2) == ["budget", "budget"]
    await spending.wrap(model).complete(request("answer"))
    assert len(model.requests) == 1


async def test_a_call_under_way_is_broken_off_when_its_time_is_over() -> None:
    ended = asyncio.Event()

    async def hang(_: ChatRequest) -> ChatReply:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    spending = Spending(Budget(max_seconds=0.02), profile(), ROLES)
    async with asyncio.timeout(10):
        assert await outcomes(spending, FakeModel(hang), 1) == ["budget"]
    assert ended.is_set()


def test_money_without_prices_is_an_error_that_names_the_key() -> None:
    with pytest.raises(ConfigError, match=r"roles\.select\.price"):
        Spending(Budget(max_cost=1.0), profile(None), ROLES)


def test_what_is_left_after_a_run_is_never_negative() -> None:
    budget = Budget(max_cost=1.0, max_calls=3, max_seconds=5)
    usage = {"select": Usage(calls=9, prompt_tokens=10_000_000)}
    assert budget.after(usage, profile(), 7.0) == Budget(0.0, 0, 0.0)
    assert not Budget()
    assert Budget(max_calls=0)
