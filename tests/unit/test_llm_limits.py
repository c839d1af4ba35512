"""Calls are held back as the endpoint wants it, and permits are never lost."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmars.errors import CallFailed
from hmars.llm.contract import ChatRequest
from hmars.llm.failures import Transient
from hmars.llm.fake import FakeClock, FakeModel
from hmars.llm.limits import Limited, Limiter, Permit
from hmars.settings import EndpointSettings
from tests.llm_support import ask

GUARD_S = 5
ANY = ask(output=None)


def limiter(clock: FakeClock | None = None, **table: Any) -> Limiter:
    endpoint = EndpointSettings.model_validate({"base_url": "http://localhost/v1", **table})
    return Limiter(endpoint, clock=clock or FakeClock())


def limited(model: FakeModel, held: Limiter) -> Limited:
    return Limited(model, held, max_tokens=10)


async def all_waiting(condition: Any) -> None:
    async with asyncio.timeout(GUARD_S):
        while not condition():  # noqa: ASYNC110 - the models are fakes: one turn of the loop each
            await asyncio.sleep(0)


async def test_exactly_the_allowed_number_is_under_way() -> None:
    gate = asyncio.Event()

    async def wait(_: ChatRequest) -> str:
        await gate.wait()
        return "fine"

    model = FakeModel(wait)
    chat = limited(model, limiter(in_flight=3))
    tasks = [asyncio.create_task(chat.complete(ANY)) for _ in range(10)]
    await all_waiting(lambda: len(model.requests) == 3)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(model.requests) == 3
    gate.set()
    await asyncio.wait(tasks, timeout=GUARD_S)
    assert model.peak == 3
    assert len(model.requests) == 10


async def test_permits_come_back_after_cancellation_failure_and_timeout() -> None:
    held = limiter(in_flight=3)

    async def hang(_: ChatRequest) -> str:
        await asyncio.Event().wait()
        return ""

    for _ in range(5):
        stuck = FakeModel(hang)
        chat = limited(stuck, held)
        tasks = [asyncio.create_task(chat.complete(ANY)) for _ in range(9)]
        await all_waiting(lambda stuck=stuck: len(stuck.requests) == 3)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=GUARD_S)
        assert held.in_flight == 0

    failing = limited(FakeModel(lambda _: CallFailed("x", problem="timeout", role="card")), held)
    for _ in range(4):
        with pytest.raises(CallFailed):
            await failing.complete(ANY)
    assert held.in_flight == 0
    await test_exactly_the_allowed_number_is_under_way()


async def test_a_rate_limit_halves_what_is_under_way_and_success_brings_it_back() -> None:
    clock = FakeClock()
    held = limiter(clock, in_flight=16)
    limit = Transient("slow", problem="rate_limit", role="card")
    busy = limited(FakeModel(lambda _: limit), held)
    clock.now = 1.0
    with pytest.raises(Transient):
        await busy.complete(ANY)
    assert held.window == 8
    fine = limited(FakeModel(lambda _: "fine"), held)
    windows = [held.window]
    for _ in range(200):
        await fine.complete(ANY)
        windows.append(held.window)
    assert windows == sorted(windows)
    assert windows[-1] == 16


async def test_calls_sent_together_halve_only_once() -> None:
    clock = FakeClock()
    held = limiter(clock, in_flight=16)
    burst = [Permit(1, given_at=0.0) for _ in range(16)]
    clock.now = 1.0
    for permit in burst:
        held.slow_down(permit, None)
    assert held.window == 8


async def test_after_a_rate_limit_nothing_is_sent_until_the_wait_is_over() -> None:
    clock = FakeClock()
    held = limiter(clock, in_flight=4)
    held.slow_down(Permit(1, given_at=0.0), 7.0)
    await limited(FakeModel(lambda _: "fine"), held).complete(ANY)
    assert clock.now == 7.0


async def test_pauses_double_while_nothing_gets_through_and_start_again_after_success() -> None:
    clock = FakeClock()
    held = limiter(clock, in_flight=4)
    limit = Transient("slow", problem="rate_limit", role="card")
    answers: list[Transient | str] = [limit, limit, limit, "fine", limit, "fine"]
    chat = limited(FakeModel(lambda _: answers.pop(0)), held)
    starts: list[float] = []
    for _ in range(6):
        with contextlib.suppress(Transient):
            await chat.complete(ANY)
        starts.append(clock.now)
    assert starts == [0, 1, 3, 7, 7, 8]


async def test_a_wait_longer_than_allowed_does_not_hold_up_the_others() -> None:
    clock = FakeClock()
    held = limiter(clock, max_wait_s=120)
    held.slow_down(Permit(1, given_at=0.0), 198_300.0)
    await limited(FakeModel(lambda _: "fine"), held).complete(ANY)
    assert clock.now <= 30


async def test_no_more_requests_start_within_a_period_than_allowed() -> None:
    model = FakeModel(lambda _: "fine")
    chat = limited(model, limiter(in_flight=9, requests_per_minute=3))
    tasks = [asyncio.create_task(chat.complete(ANY)) for _ in range(6)]
    await asyncio.wait(tasks[:3], timeout=GUARD_S)
    assert len(model.requests) == 3
    assert not any(task.done() for task in tasks[3:])
    for task in tasks[3:]:
        task.cancel()
    await asyncio.wait(tasks, timeout=GUARD_S)


async def test_tokens_within_a_period_stay_below_the_rate() -> None:
    clock = FakeClock()
    chat = limited(FakeModel(lambda _: "fine"), limiter(clock, tokens_per_minute=100))
    starts: list[float] = []
    for _ in range(5):
        await chat.complete(ask(output=None, prompt_tokens=40))
        starts.append(clock.now)
    # 40 + 10 are reserved and 40 + 1 used, so two calls fit into a minute.
    assert starts == [0, 0, 60, 60, 120]


async def test_a_call_larger_than_the_rate_is_sent_alone_and_not_held_for_ever() -> None:
    clock = FakeClock()
    chat = limited(FakeModel(lambda _: "fine"), limiter(clock, tokens_per_minute=100))
    for _ in range(2):
        await chat.complete(ask(output=None, prompt_tokens=5_000))
    assert clock.now == 60


def test_one_limiter_in_two_loops_shares_no_lock() -> None:
    held = limiter(in_flight=1, requests_per_minute=1000)
    chat = limited(FakeModel(lambda _: "fine"), held)

    async def some() -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(4):
                tasks.create_task(chat.complete(ANY))

    asyncio.run(some())
    asyncio.run(some())


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.sampled_from(["fine", "fail", "slow", "cancel"]), max_size=30), st.integers(1, 5)
)
def test_whatever_happens_to_calls_every_permit_comes_back(fates: list[str], allowed: int) -> None:
    async def run() -> None:
        held = limiter(in_flight=allowed)

        async def meet(request: ChatRequest) -> str:
            fate = request.affinity
            await asyncio.sleep(0)
            if fate == "cancel":
                await asyncio.Event().wait()
            if fate == "slow":
                raise Transient("slow", problem="rate_limit", role="card")
            if fate == "fail":
                raise CallFailed("no", problem="server", role="card")
            return "fine"

        model = FakeModel(meet)
        chat = limited(model, held)
        tasks = [
            asyncio.create_task(chat.complete(ask(output=None, affinity=fate))) for fate in fates
        ]
        others = [task for task, fate in zip(tasks, fates, strict=True) if fate != "cancel"]
        while not all(task.done() for task in others):
            await asyncio.sleep(0)
            for task, fate in zip(tasks, fates, strict=True):
                if fate == "cancel":
                    task.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert held.in_flight == 0
        assert model.peak <= allowed

    asyncio.run(run())
