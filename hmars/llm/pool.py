"""The models of one open memory: connections by event loop, engines by file, costs by run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from hmars.llm.budget import Budget, Spending
from hmars.llm.contract import CallLog, ChatModel, Notify, ReplyCache
from hmars.llm.prefix import PrefixWatch
from hmars.model import Role, Usage
from hmars.settings import Profile

if TYPE_CHECKING:  # the HTTP client takes seconds to import, and not every profile calls models
    from hmars.llm.embedded import EmbeddedEngines
    from hmars.llm.stack import ModelStack

Models = Callable[[Role], ChatModel]
SpentSoFar = Callable[[], Mapping[str, Usage]]
FEWEST_WORKERS = 16


class ModelPool:
    """Opens what a profile's roles need when they need it. Starts and connects nothing before.

    Connections and limits belong to the event loop that made them; embedded engines serve all.
    """

    def __init__(
        self,
        profile: Profile,
        cache: ReplyCache | None,
        log: CallLog | None,
        warn: Notify,
        note: Notify | None = None,
    ) -> None:
        """Args:
        warn: takes one line for each thing the user should know, once.
        note: takes short-lived lines such as "waiting for rate limit, 3 s left".
        """
        self.profile = profile
        self._cache = cache
        self._log = log
        self._warn = warn
        self._note = note
        self._watch = PrefixWatch(warn)
        self._stacks: dict[asyncio.AbstractEventLoop, ModelStack] = {}
        self._engines: EmbeddedEngines | None = None

    async def run(
        self,
        roles: Sequence[Role],
        budget: Budget | None = None,
        evidence_tokens: int | None = None,
    ) -> tuple[Models | None, SpentSoFar]:
        """The models of one run and what they have spent; no models in an extractive profile.

        Args:
            roles: that the run will use.
            budget: what it may spend; what is beyond fails with the problem `budget`.
            evidence_tokens: of the whole scope; no answer can be written from more.

        Raises:
            ConfigError: an endpoint cannot be used, or a prompt of these roles cannot fit it.
        """
        if self.profile.agents == "extractive":
            return None, dict
        from hmars.llm.fit import check_fit, needs

        stack = await self._stack()
        await check_fit(stack, self.profile, needs(self.profile, roles))
        recorder = stack.new_recorder(self._log)
        spending = None
        if budget:
            spending = Spending(budget, self.profile, tuple(roles), evidence_tokens=evidence_tokens)

        def model(role: Role) -> ChatModel:
            watched = self._watch.wrap(stack.model(role, recorder))
            return spending.wrap(watched) if spending else watched

        return model, lambda: recorder.usage

    def workers(self) -> int:
        """Enough tasks to keep every endpoint's limiter busy."""
        in_flight = [endpoint.in_flight for endpoint in self.profile.endpoints.values()]
        return max([FEWEST_WORKERS, *(2 * count for count in in_flight)])

    async def served(self) -> Profile:
        """The profile with its embedded engines running and their addresses in it."""
        if all(settings.engine == "http" for settings in self.profile.endpoints.values()):
            return self.profile
        if self._engines is None:
            from hmars.llm.embedded import EmbeddedEngines

            self._engines = EmbeddedEngines(self.profile)
        return await asyncio.to_thread(self._engines.serve)

    async def close_loop(self) -> None:
        """Close what belongs to the running loop."""
        stack = self._stacks.pop(asyncio.get_running_loop(), None)
        if stack is not None:
            await stack.close()

    def close_engines(self) -> None:
        """Stop the embedded engines, once no loop uses them any more."""
        if self._engines is not None:
            self._engines.close()

    async def _stack(self) -> ModelStack:
        loop = asyncio.get_running_loop()
        served = await self.served()
        stack = self._stacks.get(loop)
        if stack is None:
            from hmars.llm.stack import ModelStack

            stack = ModelStack(served, cache=self._cache, warn=self._warn, note=self._note)
            self._stacks[loop] = stack
        return stack
