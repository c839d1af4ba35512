"""What a run shows while it works: plain lines where there is no terminal, and never silence."""

from __future__ import annotations

import asyncio
import itertools
import time

import pytest
from rich.console import Console

from hmars.cli import output
from hmars.cli.output import HEARTBEAT_SECONDS, SECONDS_BETWEEN_LINES, ProgressDisplay
from hmars.cli.render import cost_text
from hmars.model import WAITING, Progress, Usage


def plain() -> ProgressDisplay:
    return ProgressDisplay(Console(stderr=True), None)


async def test_a_run_that_waits_for_one_last_call_says_so_at_least_every_half_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) > 3:
            raise asyncio.CancelledError

    display = plain()
    display(Progress("card", 84, 88))
    monkeypatch.setattr(output.asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await display.heartbeat()
    assert set(slept) == {HEARTBEAT_SECONDS} and HEARTBEAT_SECONDS <= 30
    lines = [f"card: 84 of 88, nothing new for {waited} s" for waited in (20, 40, 60)]
    assert capsys.readouterr().err.splitlines() == lines


def test_a_wait_is_told_with_what_it_holds_up_and_not_every_second(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = itertools.count(time.monotonic() + 1)
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    display = plain()
    display(Progress("card", 3, 40))
    for left in range(20, 0, -1):
        display(Progress(WAITING, 0, 0, f"waiting for rate limit, {left} s left"))
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 20 / SECONDS_BETWEEN_LINES + 1
    assert all(line.startswith("card: 3 of 40 (waiting for rate limit, ") for line in lines)


def test_a_wait_before_anything_is_done_is_told_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = itertools.count(time.monotonic() + 10, 10)
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    plain()(Progress(WAITING, 0, 0, "waiting for rate limit, 9 s left"))
    assert capsys.readouterr().err == "waiting for rate limit, 9 s left\n"


def test_replies_that_cost_nothing_are_told_as_kept_and_not_as_calls_of_no_tokens() -> None:
    kept = Usage(paths={"cache_hit": 2})
    some = Usage(calls=16, prompt_tokens=8712, completion_tokens=80, paths={"cache_hit": 1})
    assert cost_text({"answer": kept, "read": some}, 0.25) == (
        "Cost: answer 0 calls (2 replies kept from before); read 16 calls "
        "(8,712 tokens in, 80 out; 1 reply kept from before); 0.2 s."
    )
