"""Waiting and trying again, on a clock that the test turns."""

from __future__ import annotations

import asyncio
import random
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmars.errors import CallFailed, CallProblem, EndpointError
from hmars.llm.contract import ChatReply, ChatRequest
from hmars.llm.failures import Transient
from hmars.llm.fake import FakeClock, FakeModel, ScriptedModel
from hmars.llm.retry import Retrying, RetryPolicy, parse_retry_after
from hmars.model import Usage
from tests.llm_support import ask

NOW = 1_800_000_000.0
ANY = ask(output=None)


def passing(problem: CallProblem = "server", wait: float | None = None) -> Transient:
    return Transient(
        "It failed.",
        problem=problem,
        role="card",
        usage=Usage(calls=1, prompt_tokens=5),
        retry_after_s=wait,
    )


WAITS: list[tuple[dict[str, str], float | None]] = [
    ({"retry-after": "3"}, 3.0),
    ({"retry-after": "1.5"}, 1.5),
    ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
    ({"retry-after": formatdate(NOW + 3, usegmt=True)}, 3.0),
    ({"retry-after": formatdate(NOW - 3, usegmt=True)}, None),
    ({"retry-after": "198300"}, 198_300.0),
    ({"retry-after": "abc"}, None),
    ({"retry-after": "-5"}, None),
    ({"retry-after": "0"}, None),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "inf"}, None),
    ({"retry-after-ms": "-1"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("headers", "seconds"), WAITS)
def test_a_wait_is_read_from_the_headers_or_not_at_all(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert parse_retry_after(headers, NOW) == seconds


@given(st.text())
def test_any_header_gives_a_positive_wait_or_none(value: str) -> None:
    wait = parse_retry_after({"retry-after": value}, NOW)
    assert wait is None or wait > 0


async def test_a_failure_that_passes_costs_a_growing_wait_and_is_counted() -> None:
    clock = FakeClock()
    model = ScriptedModel([passing(), passing(), ChatReply("fine", usage=Usage(calls=1))])
    reply = await Retrying(model, RetryPolicy(), clock=clock).complete(ANY)
    assert reply.text == "fine"
    assert reply.usage == Usage(calls=3, prompt_tokens=10, retries=2)
    assert 0.25 + 0.5 <= clock.now <= 0.75 + 1.5


async def test_the_wait_that_is_asked_for_is_kept_and_told() -> None:
    clock, notes = FakeClock(), list[str]()
    model = ScriptedModel([passing("rate_limit", 3.0), "fine"])
    await Retrying(model, RetryPolicy(), clock=clock, note=notes.append).complete(ANY)
    assert clock.now == 3.0
    assert notes == [f"waiting for rate limit, {left} s left" for left in (3, 2, 1)]


async def test_a_wait_beyond_the_limit_fails_at_once_and_says_how_long_it_would_be() -> None:
    clock = FakeClock()
    model = ScriptedModel([passing("rate_limit", 198_300.0)])
    with pytest.raises(CallFailed, match="198,300 s") as failed:
        await Retrying(model, RetryPolicy(max_wait_s=120), clock=clock).complete(ANY)
    assert failed.value.problem == "rate_limit"
    assert clock.slept == []
    model.check_finished()


async def test_attempts_end_and_the_failure_carries_what_they_cost() -> None:
    model = FakeModel(lambda _: passing("timeout"))
    with pytest.raises(CallFailed) as failed:
        await Retrying(model, RetryPolicy(retries=3), clock=FakeClock()).complete(ANY)
    assert len(model.requests) == failed.value.attempts == 4
    assert failed.value.usage == Usage(calls=4, prompt_tokens=20, retries=3)
    assert not isinstance(failed.value, Transient)


async def test_what_cannot_pass_is_not_tried_again() -> None:
    stop = EndpointError("No.", problem="quota", role="card")
    model = ScriptedModel([stop])
    with pytest.raises(EndpointError):
        await Retrying(model, RetryPolicy(), clock=FakeClock()).complete(ANY)


async def test_a_host_that_stays_away_stops_the_run_after_the_last_attempt() -> None:
    gone = EndpointError("Gone.", problem="unreachable", role="card")
    failure = Transient("Gone.", problem="connection", role="card", lasting=gone)
    model = FakeModel(lambda _: failure)
    with pytest.raises(EndpointError):
        await Retrying(model, RetryPolicy(retries=2), clock=FakeClock()).complete(ANY)
    assert len(model.requests) == 3


async def test_a_cancellation_is_never_tried_again() -> None:
    started = asyncio.Event()

    async def hang(_: ChatRequest) -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    model = FakeModel(hang)
    task = asyncio.create_task(Retrying(model, RetryPolicy(), clock=FakeClock()).complete(ANY))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(model.requests) == 1


async def test_a_cancellation_ends_a_wait_at_once() -> None:
    waiting = asyncio.Event()

    class Still(FakeClock):
        async def sleep(self, seconds: float) -> None:
            waiting.set()
            await asyncio.Event().wait()

    model = FakeModel(lambda _: passing("rate_limit", 100.0))
    task = asyncio.create_task(Retrying(model, RetryPolicy(), clock=Still()).complete(ANY))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_pieces_of_a_broken_stream_are_not_heard_twice() -> None:
    heard: list[str] = []
    attempts: list[int] = []

    def speak(request: ChatRequest) -> Transient | str:
        attempts.append(1)
        assert request.on_text is not None
        if len(attempts) == 1:
            request.on_text("Am")
            return passing("connection")
        return "Amber"

    model = Retrying(FakeModel(speak), RetryPolicy(), clock=FakeClock())
    assert (await model.complete(ask(output=None, on_text=heard.append))).text == "Amber"
    assert heard == ["Am"]


async def test_waits_differ_between_calls_so_that_they_do_not_return_together() -> None:
    clocks = [FakeClock() for _ in range(8)]
    for number, clock in enumerate(clocks):
        model = ScriptedModel([passing(), "fine"])
        chance = random.Random(number)
        await Retrying(model, RetryPolicy(), clock=clock, chance=chance).complete(ANY)
    assert len({clock.now for clock in clocks}) == len(clocks)
