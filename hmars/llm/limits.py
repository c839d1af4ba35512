"""One limiter for each endpoint: calls in flight, requests per period, tokens per minute."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from asyncio_throttle.throttler import Throttler

from hmars.errors import ModelError
from hmars.llm.clock import Clock, SystemClock
from hmars.llm.contract import ChatModel, ChatReply, ChatRequest
from hmars.llm.failures import Transient
from hmars.model import Usage
from hmars.settings import EndpointSettings

MINUTE_S = 60.0
THROTTLE_POLL_S = 0.05
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
CHARACTERS_PER_TOKEN = 4


@dataclass(eq=False)
class Permit:
    """Leave for one call, from `given_at` by the limiter's clock."""

    tokens: int
    """What the call may use; replaced by what it used once that is known."""
    given_at: float = 0.0


@dataclass
class _LoopState:
    """What belongs to one running event loop and must not be used from another."""

    loop: asyncio.AbstractEventLoop
    slots: anyio.CapacityLimiter
    throttler: Throttler | None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while waiting for a period to pass: one poller, first come first served."""


class Limiter:
    """Holds calls back until the endpoint may be asked, and slows down when it says so.

    The number in flight follows the rule of TCP: halved when the endpoint limits the rate (once
    for all calls that were sent before the halving), then one more for each window of successes,
    up to `in_flight`. After a rate limit nothing is sent for a pause, which doubles as long as no
    call gets through.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        *,
        clock: Clock | None = None,
        period_s: float = MINUTE_S,
    ) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._period_s = period_s
        self._state: _LoopState | None = None
        self._window = float(settings.in_flight)
        self._slowed_at = float("-inf")
        self._closed_until = float("-inf")
        self._pauses = 0
        self._permits: deque[Permit] = deque()

    @property
    def window(self) -> int:
        """Calls allowed in flight right now."""
        return max(1, int(self._window))

    @property
    def in_flight(self) -> int:
        return self._state.slots.borrowed_tokens if self._state else 0

    @asynccontextmanager
    async def slot(self, tokens: int) -> AsyncGenerator[Permit, None]:
        """Wait until a call of about `tokens` tokens may be sent."""
        state = self._here()
        permit = Permit(tokens)
        await state.slots.acquire_on_behalf_of(permit)
        try:
            await self._wait_for_gate()
            await self._wait_for_period(state, permit)
            permit.given_at = self._clock.monotonic()
            yield permit
        finally:
            state.slots.release_on_behalf_of(permit)

    def succeeded(self) -> None:
        """A call got through: allow a little more."""
        self._pauses = 0
        if self._window < self._settings.in_flight:
            self._resize(self._window + 1 / self._window)

    def slow_down(self, permit: Permit, retry_after_s: float | None) -> None:
        """The endpoint limited the rate of the call that had `permit`."""
        now = self._clock.monotonic()
        if retry_after_s is not None and retry_after_s <= self._settings.max_wait_s:
            self._closed_until = max(self._closed_until, now + retry_after_s)
        if permit.given_at < self._slowed_at:
            return
        self._slowed_at = now
        self._resize(self._window / 2)
        if retry_after_s is None:
            pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**self._pauses)
            self._closed_until = max(self._closed_until, now + pause)
            self._pauses += 1

    def _here(self) -> _LoopState:
        loop = asyncio.get_running_loop()
        if self._state is None or self._state.loop is not loop:
            rate = self._settings.requests_per_minute
            throttler = Throttler(rate, self._period_s, THROTTLE_POLL_S) if rate else None
            self._state = _LoopState(loop, anyio.CapacityLimiter(self.window), throttler)
        return self._state

    def _resize(self, window: float) -> None:
        self._window = min(float(self._settings.in_flight), max(1.0, window))
        if self._state is not None and self._state.slots.total_tokens != self.window:
            self._state.slots.total_tokens = self.window

    async def _wait_for_gate(self) -> None:
        while (left := self._closed_until - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)

    async def _wait_for_period(self, state: _LoopState, permit: Permit) -> None:
        rate = self._settings.tokens_per_minute
        if state.throttler is None and rate is None:
            return
        async with state.turn:
            if state.throttler is not None:
                await state.throttler.acquire()
            if rate is not None:
                await self._wait_for_tokens(permit, rate)

    async def _wait_for_tokens(self, permit: Permit, rate: int) -> None:
        """Sliding window: what was spent within one period and this call fit the rate."""
        wanted = min(permit.tokens, rate)  # a call above the rate itself gets a whole period
        while True:
            now = self._clock.monotonic()
            while self._permits and now - self._permits[0].given_at >= self._period_s:
                self._permits.popleft()
            if sum(spent.tokens for spent in self._permits) + wanted <= rate:
                permit.given_at = now
                self._permits.append(permit)
                return
            await self._clock.sleep(self._permits[0].given_at + self._period_s - now)


class Limited:
    """Asks the inner model inside a slot of its endpoint's limiter."""

    def __init__(self, inner: ChatModel, limiter: Limiter, max_tokens: int) -> None:
        self._inner = inner
        self._limiter = limiter
        self._max_tokens = max_tokens

    async def complete(self, request: ChatRequest) -> ChatReply:
        """As the inner model, later."""
        tokens = _estimate(request) + (request.max_tokens or self._max_tokens)
        async with self._limiter.slot(tokens) as permit:
            try:
                reply = await self._inner.complete(request)
            except ModelError as error:
                if isinstance(error, Transient) and error.problem == "rate_limit":
                    self._limiter.slow_down(permit, error.retry_after_s)
                if error.usage is not None:
                    permit.tokens = _tokens(error.usage)
                raise
            self._limiter.succeeded()
            permit.tokens = _tokens(reply.usage)
            return reply


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


def _estimate(request: ChatRequest) -> int:
    if request.prompt_tokens is not None:
        return request.prompt_tokens
    return sum(len(message.content) for message in request.messages) // CHARACTERS_PER_TOKEN
