"""Models without a model, and a clock that a test turns: shipped, so that users can test, too."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from hmars.llm.contract import ChatReply, ChatRequest
from hmars.model import Usage

Says = str | BaseModel | Mapping[str, Any] | ChatReply | Exception
"""A text, a value of `request.output`, a mapping it is made from, a whole reply, or an error."""


class FakeModel:
    """Answers by a function of the request, so that the order of calls does not matter.

    The function may be async, to wait for an event of the test. `requests` holds every request in
    the order of arrival; `peak` is the largest number that was under way at once.
    """

    def __init__(self, says: Callable[[ChatRequest], Says | Awaitable[Says]]) -> None:
        self._says = says
        self.requests: list[ChatRequest] = []
        self.peak = 0
        self._under_way = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        self._under_way += 1
        self.peak = max(self.peak, self._under_way)
        try:
            said = self._says(request)
            if inspect.isawaitable(said):
                said = await said
            else:
                await asyncio.sleep(0)  # as a real call, let others run
            return as_reply(said, request)
        finally:
            self._under_way -= 1


class ScriptedModel:
    """Answers in the order of a list, for code that asks one thing after another.

    A call beyond the list is an AssertionError, and so is `check_finished` with answers left.
    """

    def __init__(self, script: Sequence[Says]) -> None:
        self._script = list(script)
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        if len(self.requests) > len(self._script):
            raise AssertionError(f"call {len(self.requests)} is not in the script: {request.role}")
        await asyncio.sleep(0)
        return as_reply(self._script[len(self.requests) - 1], request)

    def check_finished(self) -> None:
        left = len(self._script) - len(self.requests)
        if left > 0:
            raise AssertionError(f"{left} answers of the script were never asked for")


class FakeClock:
    """Time that passes only when somebody sleeps; `slept` holds how long each time."""

    def __init__(self, wall: float = 1_800_000_000.0) -> None:
        self.now = 0.0
        self._wall = wall
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self._wall + self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def as_reply(said: Says, request: ChatRequest) -> ChatReply:
    """What the stack would return for `said`; raises it if it is an error."""
    if isinstance(said, Exception):
        raise said
    if isinstance(said, ChatReply):
        return said
    reply = ChatReply(text="", usage=_usage(request), model="fake")
    if isinstance(said, str):
        value = request.output.model_validate_json(said) if request.output else None
        return _heard(replace(reply, text=said, value=value), request)
    value = said
    if not isinstance(value, BaseModel):
        if request.output is None:
            raise AssertionError("a mapping was given where the request has no output type")
        value = request.output.model_validate(value)
    return _heard(replace(reply, text=value.model_dump_json(), value=value), request)


def _heard(reply: ChatReply, request: ChatRequest) -> ChatReply:
    if request.on_text is not None:
        request.on_text(reply.text)
    return reply


def _usage(request: ChatRequest) -> Usage:
    return Usage(calls=1, prompt_tokens=request.prompt_tokens or 0, completion_tokens=1)
