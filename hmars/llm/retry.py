"""Try again what may pass: with growing waits, or as long as the server asks for."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime

from hmars.errors import CallFailed, ModelError
from hmars.llm.clock import Clock, SystemClock
from hmars.llm.contract import ChatModel, ChatReply, ChatRequest, Notify
from hmars.llm.failures import Transient
from hmars.model import Usage

FIRST_WAIT_S = 0.5
LONGEST_BACKOFF_S = 30.0
NOTE_EVERY_S = 1.0


def parse_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait by `retry-after-ms` or `retry-after` (seconds or an HTTP date).

    None where there is no such header, or its value is odd, in the past or not positive.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000 if milliseconds > 0 else None
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None and value:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = moment.timestamp() - now
    return seconds if seconds is not None and seconds > 0 else None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    retries: int = 3
    max_wait_s: float = 120.0
    """The longest Retry-After that is waited for."""


class Retrying:
    """Repeats calls that failed in a way that may pass; everything else goes straight through.

    The wait happens outside the limiter, so a waiting call keeps nobody from being served.
    """

    def __init__(
        self,
        inner: ChatModel,
        policy: RetryPolicy,
        *,
        clock: Clock | None = None,
        note: Notify | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self._inner = inner
        self._policy = policy
        self._clock = clock or SystemClock()
        self._note = note
        self._chance = chance or random.Random()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Ask until it works, or until `retries` more attempts have failed.

        Raises:
            CallFailed: no attempt worked, or the server asks for a longer wait than allowed.
            EndpointError: at once.
        """
        spent = Usage()
        attempt = 1
        while True:
            try:
                reply = await self._inner.complete(request)
            except Transient as failure:
                spent = spent + (failure.usage or Usage(calls=1))
                wait, reason = self._next_wait(failure, attempt), _reason(failure)
                if isinstance(wait, ModelError):
                    wait.usage, wait.attempts = spent, attempt
                    raise wait from None
            except ModelError as error:
                error.usage = spent + (error.usage or Usage(calls=1))
                error.attempts = attempt
                raise
            else:
                return replace(reply, usage=spent + reply.usage)
            await self._wait(wait, reason)
            spent = spent + Usage(retries=1)
            attempt += 1
            if request.on_text is not None:
                # What was shown of the first attempt cannot be taken back, only not repeated.
                request = replace(request, on_text=_unheard)

    def _next_wait(self, failure: Transient, attempt: int) -> float | ModelError:
        """Seconds to wait before the next attempt, or the error if there is none."""
        asked = failure.retry_after_s
        if asked is not None and asked > self._policy.max_wait_s:
            return CallFailed(
                f"{str(failure).rstrip('.')} (it asks to wait {asked:,.0f} s, and max_wait_s is "
                f"{self._policy.max_wait_s:g} s).",
                problem=failure.problem,
                role=failure.role,
            )
        if attempt > self._policy.retries:
            return failure.lasting
        if asked is not None:
            return asked
        backoff = min(LONGEST_BACKOFF_S, FIRST_WAIT_S * 2 ** (attempt - 1))
        return backoff * self._chance.uniform(0.5, 1.5)

    async def _wait(self, seconds: float, reason: str) -> None:
        left = seconds
        while left > 0:
            if self._note is not None:
                self._note(f"waiting for {reason}, {math.ceil(left)} s left")
            step = min(left, NOTE_EVERY_S)
            await self._clock.sleep(step)
            left -= step


def _reason(failure: Transient) -> str:
    if failure.problem == "rate_limit":
        return "rate limit"
    return f"another try after a failed call ({failure.problem})"


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _unheard(piece: str) -> None:
    """Keeps a repeated reply streamed, so that loops are still noticed."""
