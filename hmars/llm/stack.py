"""The models of a profile, ready to be asked: every role behind the same wrappers, in one order."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from hmars.errors import ConfigError
from hmars.llm.cache import Cached
from hmars.llm.clock import Clock, SystemClock
from hmars.llm.context import served_context
from hmars.llm.contract import CallLog, ChatModel, Notify, ReplyCache
from hmars.llm.endpoint import Endpoint, TransportMaker
from hmars.llm.failures import Place
from hmars.llm.limits import Limited, Limiter
from hmars.llm.openai_client import OpenAIChat
from hmars.llm.record import Recorder
from hmars.llm.retry import Retrying, RetryPolicy
from hmars.llm.structured import ModeMemory, Structured
from hmars.model import Role, Usage
from hmars.settings import Profile, RoleSettings


class ModelStack:
    """Models by role: record, cache, validate and re-ask, retry, limit, call, from outside in.

    Roles of one endpoint share its connections and its limiter. Everything belongs to the event
    loop it is used in: make one stack for each loop.

        async with ModelStack(profile, cache=store, log=store, warn=print) as models:
            reply = await models.model("card").complete(request)
    """

    def __init__(
        self,
        profile: Profile,
        cache: ReplyCache | None = None,
        log: CallLog | None = None,
        warn: Notify | None = None,
        *,
        note: Notify | None = None,
        clock: Clock | None = None,
        transport: TransportMaker | None = None,
    ) -> None:
        """Args:
            profile: its roles and endpoints.
            cache: keeps replies over runs; None asks always.
            log: keeps the history of calls.
            warn: takes one line for each thing the user should know, once.
            note: takes short-lived lines such as "waiting for rate limit, 3 s left".
            clock: stands in for the system's in tests.
            transport: makes the HTTP side of an endpoint.

        Raises:
            ConfigError: an endpoint that is used has no usable address or no key.
        """
        self._profile = profile
        self._cache = cache
        self._warn = warn or _silent
        self._note = note
        self._clock = clock or SystemClock()
        self.recorder = Recorder(log, self._clock)
        used = dict.fromkeys(settings.endpoint for settings in profile.roles.values())
        self._endpoints = {
            name: Endpoint(name, profile.endpoints[name], warn=self._warn, transport=transport)
            for name in used
        }
        self._limiters = {
            name: Limiter(endpoint.settings, clock=self._clock)
            for name, endpoint in self._endpoints.items()
        }
        self._modes: dict[tuple[str, str], ModeMemory] = {}
        self._contexts: dict[tuple[str, str], int | None] = {}
        self._unrecorded: dict[Role, ChatModel] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def usage(self) -> dict[str, Usage]:
        """What was spent through `model(role)` so far, by role."""
        return self.recorder.usage

    def model(self, role: Role, recorder: Recorder | None = None) -> ChatModel:
        """The model of a role. `recorder` adds up the cost of one question apart from the others.

        Raises:
            ConfigError: the profile has no such role.
        """
        if role not in self._unrecorded:
            self._unrecorded[role] = self._build(role)
        return (recorder or self.recorder).wrap(self._unrecorded[role], self._role(role).model)

    def new_recorder(self, log: CallLog | None = None) -> Recorder:
        """A recorder on the clock of this stack."""
        return Recorder(log, self._clock)

    def endpoint(self, role: Role) -> Endpoint:
        return self._endpoints[self._role(role).endpoint]

    def in_flight(self, role: Role) -> int:
        """How many calls of this role's endpoint are worth having under way at once."""
        return self.endpoint(role).settings.in_flight

    async def context_tokens(self, role: Role) -> int | None:
        """Context length in tokens for a role: from the profile, else as the server tells it.

        Raises:
            EndpointError, CallFailed: the server had to be asked and cannot be.
        """
        settings = self._role(role)
        if settings.context_tokens is not None:
            return settings.context_tokens
        key = (settings.endpoint, settings.model)
        if key not in self._contexts:
            endpoint = self._endpoints[settings.endpoint]
            self._contexts[key] = await served_context(endpoint, self.place(role))
        return self._contexts[key]

    def place(self, role: Role) -> Place:
        """How messages name where this role's calls go."""
        settings = self._role(role)
        endpoint = self._endpoints[settings.endpoint]
        return Place(
            endpoint=endpoint.name,
            role=role,
            model=settings.model,
            url=endpoint.shown_url,
            redactor=endpoint.redactor,
        )

    async def close(self) -> None:
        """Close all connections. Calls still under way fail."""
        for endpoint in self._endpoints.values():
            await endpoint.close()

    def _role(self, role: Role) -> RoleSettings:
        settings = self._profile.roles.get(role)
        if settings is None:
            raise ConfigError(
                f"The profile '{self._profile.name}' has no model for the role '{role}': "
                f"add [roles.{role}] with endpoint and model."
            )
        return settings

    def _build(self, role: Role) -> ChatModel:
        settings = self._role(role)
        endpoint = self._endpoints[settings.endpoint]
        key = (settings.endpoint, settings.model)
        memory = self._modes.get(key)
        if memory is None:
            memory = ModeMemory(endpoint.settings.structured, warn=self._warn)
            self._modes[key] = memory
        policy = RetryPolicy(endpoint.settings.retries, endpoint.settings.max_wait_s)
        model: ChatModel = OpenAIChat(endpoint, role, settings, self._clock)
        model = Limited(model, self._limiters[settings.endpoint], settings.max_tokens)
        model = Retrying(model, policy, clock=self._clock, note=self._note)
        model = Structured(
            model,
            memory,
            max_tokens=settings.max_tokens,
            context_tokens=lambda: settings.context_tokens or self._contexts.get(key),
        )
        return Cached(model, self._cache, settings) if self._cache is not None else model


def _silent(line: str) -> None:
    """Takes warnings where nobody wants them."""
