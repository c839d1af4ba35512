"""What one run may spend: money, calls or time. What it does not reach is named, never forgotten.

A call is let through while what was spent, what is under way and what the answer will need stay
within the limits; where only calls under way stand in between, it waits for them. Beyond that it
fails with the problem `budget`, and its region is *skipped* in the ledger. Calls that are needed to
finish something begun (retries, one re-ask) are not broken off, so that a limit can be passed by
what is under way; replies from the cache cost nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hmars.errors import CallFailed, ConfigError, ModelError
from hmars.llm.contract import ChatModel, ChatReply, ChatRequest
from hmars.model import Role, Usage
from hmars.settings import PriceSettings, Profile

PER_MILLION = 1_000_000
ANSWER_SHARE_OF_TIME = 0.2
"""Of `max_seconds`, kept for the answer: reading ends before."""
INSTRUCTIONS = 700
"""More than the instructions and the question of an answer take, in tokens."""
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one run; None is no limit. `max_cost` is in the money of the profile's prices."""

    max_cost: float | None = None
    max_calls: int | None = None
    max_seconds: float | None = None

    def __bool__(self) -> bool:
        return any(limit is not None for limit in (self.max_cost, self.max_calls, self.max_seconds))

    def after(self, usage: Mapping[str, Usage], profile: Profile, seconds: float) -> Budget:
        """What is left for the next run once one has cost this."""
        calls = sum(spent.calls for spent in usage.values())
        cost = total_cost(usage, profile) or 0.0
        return Budget(
            max_cost=None if self.max_cost is None else max(0.0, self.max_cost - cost),
            max_calls=None if self.max_calls is None else max(0, self.max_calls - calls),
            max_seconds=None if self.max_seconds is None else max(0.0, self.max_seconds - seconds),
        )


def cost_of(usage: Usage, price: PriceSettings) -> float:
    """What these tokens cost, in the money of the price."""
    fresh = max(0, usage.prompt_tokens - usage.cached_tokens)
    cached = price.input if price.cached is None else price.cached
    return (
        fresh * price.input + usage.cached_tokens * cached + usage.completion_tokens * price.output
    ) / PER_MILLION


def total_cost(usage: Mapping[str, Usage], profile: Profile) -> float | None:
    """What a run cost; None where a role that was used has no price."""
    prices = {str(role): settings.price for role, settings in profile.roles.items()}
    total = 0.0
    for role, spent in usage.items():
        price = prices.get(role)
        if price is None:
            return None
        total += cost_of(spent, price)
    return total if usage else None


@dataclass
class _RoleState:
    calls: int = 0
    completion_tokens: int = 0


class Spending:
    """The state of one run's budget; belongs to the event loop of the run.

    Raises:
        ConfigError: `max_cost` without a price for a role that the run uses.
    """

    def __init__(
        self,
        budget: Budget,
        profile: Profile,
        roles: tuple[Role, ...],
        clock: Callable[[], float] = time.monotonic,
        *,
        evidence_tokens: int | None = None,
    ) -> None:
        """`evidence_tokens`: what can be put before the answer model at most, where that is less
        than the profile allows."""
        self._budget = budget
        self._profile = profile
        self._clock = clock
        self._began = clock()
        self._cost = 0.0
        self._calls = 0
        self._reserved_cost = 0.0
        self._under_way = 0
        self._roles: dict[str, _RoleState] = {}
        self._changed = asyncio.Condition()
        unpriced = [role for role in roles if profile.roles[role].price is None]
        if budget.max_cost is not None and unpriced:
            raise ConfigError(
                f"A budget in money needs prices: add roles.{unpriced[0]}.price = "
                "{ input = ..., output = ... } per million tokens to the profile."
            )
        self._answer_calls, self._answer_cost = 0, 0.0
        if "answer" in roles:
            self._answer_calls = 1
            settings = profile.roles["answer"]
            if settings.price is not None:
                evidence = profile.answer.max_prompt_tokens
                if evidence_tokens is not None:
                    evidence = min(evidence, evidence_tokens)
                prompt = evidence + INSTRUCTIONS
                longest = Usage(prompt_tokens=prompt, completion_tokens=settings.max_tokens)
                self._answer_cost = cost_of(longest, settings.price)

    def wrap(self, model: ChatModel) -> ChatModel:
        return _Budgeted(model, self)

    def deadline(self, role: str) -> float | None:
        """Seconds left for a call of this role; None without a limit."""
        if self._budget.max_seconds is None or role == "answer":
            return None
        share = 1.0 - ANSWER_SHARE_OF_TIME if self._answer_calls else 1.0
        return self._began + share * self._budget.max_seconds - self._clock()

    async def admit(self, request: ChatRequest) -> float:
        """Wait for leave to make a call; what was set aside for it.

        Raises:
            CallFailed: the budget does not reach for it.
        """
        wanted = self._wanted(request)
        if request.role == "answer":
            return self._take(wanted)  # what was kept for it
        async with self._changed:
            while (limit := self._in_the_way(request.role, wanted)) is not None:
                if not self._under_way or limit == "seconds":
                    raise self.refused(request.role)
                await self._changed.wait()
            return self._take(wanted)

    async def settle(self, role: str, reserved: float, usage: Usage) -> None:
        """Put what a call cost in the place of what was set aside."""
        state = self._roles.setdefault(role, _RoleState())
        state.calls += usage.calls
        state.completion_tokens += usage.completion_tokens
        price = self._price(role)
        self._cost += cost_of(usage, price) if price else 0.0
        self._calls += usage.calls
        self._reserved_cost -= reserved
        self._under_way -= 1
        async with self._changed:
            self._changed.notify_all()

    def refused(self, role: str) -> CallFailed:
        limits = {
            "--max-cost": self._budget.max_cost,
            "--max-calls": self._budget.max_calls,
            "--max-seconds": self._budget.max_seconds,
        }
        said = ", ".join(f"{name} {limit:g}" for name, limit in limits.items() if limit is not None)
        if self._budget.max_cost is not None and self._answer_cost:
            said += f", of which {self._answer_cost:.4f} is kept for the answer"
        return CallFailed(
            f"The budget of this run ({said}) was spent before everything was asked.",
            problem="budget",
            role=role,
            usage=Usage(),
            attempts=0,
        )

    def _take(self, wanted: float) -> float:
        self._reserved_cost += wanted
        self._under_way += 1
        return wanted

    def _in_the_way(self, role: str, wanted: float) -> str | None:
        left = self.deadline(role)
        if left is not None and left <= 0:
            return "seconds"
        calls = self._calls + self._under_way + 1 + self._answer_calls
        if self._budget.max_calls is not None and calls > self._budget.max_calls:
            return "calls"
        cost = self._cost + self._reserved_cost + wanted + self._answer_cost
        if self._budget.max_cost is not None and cost > self._budget.max_cost:
            return "cost"
        return None

    def _wanted(self, request: ChatRequest) -> float:
        """What a call will cost: its prompt, and a reply as long as they have been so far."""
        price = self._price(request.role)
        if price is None:
            return 0.0
        prompt = request.prompt_tokens
        if prompt is None:
            characters = sum(len(message.content) for message in request.messages)
            prompt = characters // CHARACTERS_PER_TOKEN
        longest = request.max_tokens or self._profile.roles[request.role].max_tokens
        state = self._roles.get(request.role, _RoleState())
        usual = -(-state.completion_tokens // state.calls) if state.calls else longest
        expected = Usage(prompt_tokens=prompt, completion_tokens=min(longest, usual))
        return cost_of(expected, price)

    def _price(self, role: str) -> PriceSettings | None:
        found = {str(name): settings for name, settings in self._profile.roles.items()}
        return found[role].price if role in found else None


class _Budgeted:
    def __init__(self, inner: ChatModel, spending: Spending) -> None:
        self._inner = inner
        self._spending = spending

    async def complete(self, request: ChatRequest) -> ChatReply:
        """As the inner model, while the budget reaches."""
        reserved = await self._spending.admit(request)
        usage = Usage()
        limit = asyncio.timeout(self._spending.deadline(request.role))
        try:
            async with limit:
                reply = await self._inner.complete(request)
            usage = reply.usage
            return reply
        except ModelError as error:
            usage = error.usage or Usage(calls=1)
            raise
        except TimeoutError:
            if not limit.expired():
                raise
            usage = Usage(calls=1)
            raise self._spending.refused(request.role) from None
        finally:
            await self._spending.settle(request.role, reserved, usage)
