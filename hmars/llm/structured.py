"""Replies of a declared shape, from endpoints and models that keep to it more or less.

A reply is looked at in this order: finish reason, JSON, shape. What does not pass is asked for
once more, with the reason; then the call fails with what it cost.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from hmars.errors import CallFailed, CallProblem, EndpointError, ModelError
from hmars.llm.contract import ChatModel, ChatReply, ChatRequest, Message, Notify, StructuredMode
from hmars.llm.failures import FormatRefused
from hmars.llm.jsontext import NoJson, find_json
from hmars.llm.loops import find_loop
from hmars.llm.payload import strict_schema
from hmars.llm.shape import WrongShape, fit
from hmars.model import Usage

MODES: tuple[StructuredMode, ...] = ("json_schema", "json_object", "text")
STREAM_FROM_TOKENS = 512
"""Replies that may be longer are streamed, so that a loop costs less than the whole limit."""
IGNORED_TWICE = 2
QUOTED = 600
"""Characters of a wrong reply that the second request quotes."""
MARGIN_TOKENS = 64


class ModeMemory:
    """Which kind of structured reply one model behind one endpoint takes; learned from refusals."""

    def __init__(self, setting: Literal["auto"] | StructuredMode, *, warn: Notify | None) -> None:
        self.automatic = setting == "auto"
        self.mode: StructuredMode = "json_schema" if setting == "auto" else setting
        self._decided = not self.automatic
        self._ignored = 0
        self._warn = warn

    @property
    def decided(self) -> bool:
        return self._decided

    def worked(self) -> None:
        """A reply of the present kind came back in the right shape."""
        self._decided = True
        self._ignored = 0

    def refused(self, mode: StructuredMode, reason: str) -> bool:
        """`mode` cannot be used: go on to the next; False if there is none or the profile decided.

        Many calls may learn of the same refusal; only the first moves on.
        """
        if not self.automatic or mode == MODES[-1]:
            return False
        if mode == self.mode:
            self.mode = MODES[MODES.index(mode) + 1]
            self._decided = False
            self._ignored = 0
            if self._warn is not None:
                self._warn(f"Structured replies are asked for as '{self.mode}' from now: {reason}")
        return True

    def ignored(self, mode: StructuredMode) -> None:
        """A strict schema was accepted and not kept: twice in a row means it is not looked at."""
        if self.automatic and mode == self.mode == "json_schema":
            self._ignored += 1
            if self._ignored >= IGNORED_TWICE and not self._decided:
                self.refused(mode, "the endpoint accepts a schema and does not keep to it.")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a reply cannot be used: in words for the model, and as what it is counted."""

    problem: CallProblem
    path: str
    reason: str
    quote: bool = False
    """The wrong reply helps to see what is meant."""


class Structured:
    """Asks for `request.output` and returns it validated in `reply.value`.

    Without an output the text is taken as it is, unless it is empty, cut or a loop.
    """

    def __init__(
        self,
        inner: ChatModel,
        memory: ModeMemory,
        *,
        max_tokens: int,
        context_tokens: Callable[[], int | None],
    ) -> None:
        self._inner = inner
        self._memory = memory
        self._max_tokens = max_tokens
        self._context_tokens = context_tokens

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Ask at most twice.

        Raises:
            CallFailed: `length` where the reply was cut twice, `invalid_reply` where it was wrong
                twice; other problems from below.
            EndpointError: from below.
        """
        spent = Usage()
        fault: Fault | None = None
        reply: ChatReply | None = None
        for asked in (False, True):
            present = request if fault is None else self._second(request, fault, reply)
            try:
                reply = await self._ask(present, with_schema=asked)
            except ModelError as error:
                error.usage = spent + (error.usage or Usage())
                if fault and _too_long(error):
                    raise self._failed(request, fault, error.usage) from None
                raise
            read = self._read(reply, present, with_schema=asked)
            if isinstance(read, ChatReply):
                return replace(read, usage=spent + read.usage)
            fault = read
            spent = spent + reply.usage + Usage(paths={fault.path: 1})
            if not asked:
                again = {"length_reask": 1} if fault.problem == "length" else {}
                spent = spent + Usage(reasks=1, paths=again)
        assert fault is not None
        raise self._failed(request, fault, spent)

    async def _ask(self, request: ChatRequest, *, with_schema: bool) -> ChatReply:
        """Send it in the mode of the endpoint, going down the modes while they are refused."""
        if request.output is None:
            return await self._inner.complete(request)
        spent = Usage()
        while True:
            mode = self._memory.mode
            sent = _in_mode(request, mode, with_schema=with_schema)
            try:
                reply = await self._inner.complete(self._watched(sent))
            except EndpointError as error:
                spent = error.usage = spent + (error.usage or Usage())
                unclear = error.problem == "bad_request" and not self._memory.decided
                if not isinstance(error, FormatRefused) and not unclear:
                    raise
                if not self._memory.refused(mode, str(error)):
                    raise
                spent = spent + Usage(retries=1, paths={"mode_fallback": 1})
            except ModelError as error:
                error.usage = spent + (error.usage or Usage())
                raise
            else:
                return replace(
                    reply, usage=spent + reply.usage, extra={**reply.extra, "mode": mode}
                )

    def _watched(self, request: ChatRequest) -> ChatRequest:
        long = (request.max_tokens or self._max_tokens) >= STREAM_FROM_TOKENS
        return replace(request, on_text=_unheard) if long and not request.on_text else request

    def _read(
        self, reply: ChatReply, request: ChatRequest, *, with_schema: bool
    ) -> ChatReply | Fault:
        """The reply with its value, or what is wrong with it."""
        if request.top_logprobs is not None and "top_logprobs" in reply.extra:
            # The alternatives of the first token are the reply: its length is as it was wanted.
            return replace(reply, finish_reason="stop")
        cut = self._cut(reply, request)
        looped = cut is not None and cut.path == "loop_cut"
        if cut is not None and not (looped and request.output is not None):
            return cut
        if request.output is None:
            if reply.text.strip() or reply.tool_calls:
                return reply
            return Fault("invalid_reply", "empty", "the reply was empty")
        mode: StructuredMode = reply.extra.get("mode", "text")
        try:
            found = find_json(reply.text)
            fitted = fit(found.value, request.output)
        except (NoJson, WrongShape) as error:
            if cut is not None:
                return cut
            self._memory.ignored(mode)
            path = error.path if isinstance(error, WrongShape) else "no_json"
            return Fault("invalid_reply", path, str(error), quote=path != "schema_echo")
        if looped and "repaired" in found.paths:
            return cut or Fault("invalid_reply", "loop_cut", "")
        if mode != "json_schema" or not with_schema:
            # With the schema in the prompt as well, the reply does not show which one it kept to.
            self._memory.worked()
        paths = [*found.paths, *fitted.paths, *(["loop_cut"] if looped else [])]
        usage = reply.usage + Usage(paths=dict.fromkeys(paths, 1))
        finish = "stop" if looped else reply.finish_reason
        return replace(reply, value=fitted.value, usage=usage, finish_reason=finish)

    def _cut(self, reply: ChatReply, request: ChatRequest) -> Fault | None:
        if reply.finish_reason == "loop" or (
            reply.finish_reason == "length" and find_loop(reply.text)
        ):
            return Fault("invalid_reply", "loop_cut", "the reply repeated itself without end")
        if reply.finish_reason == "length":
            limit = request.max_tokens or self._max_tokens
            reason = f"the reply was cut off at the output limit of {limit} tokens"
            return Fault("length", "length", reason)
        return None

    def _second(self, request: ChatRequest, fault: Fault, reply: ChatReply | None) -> ChatRequest:
        """Another request than the first: it says what was wrong, and allows more where cut.

        The note goes to the end of the last message: before it, the prompt stays the same for the
        endpoint's prefix cache, and templates that want the roles in turn are content.
        """
        limit = request.max_tokens or self._max_tokens
        note = f"Your previous reply could not be used: {fault.reason}."
        if fault.quote and reply is not None and reply.text.strip():
            note += f" It began: {json.dumps(reply.text[:QUOTED], ensure_ascii=False)}."
        if fault.problem == "length":
            note += " Reply again, complete, and much shorter: keep only what matters most."
            limit = self._larger(limit, reply)
        elif request.output is not None:
            note += " Reply again with the corrected JSON object and nothing else."
        else:
            note += " Reply again."
        messages = _appended(request.messages, note)
        listener = _unheard if request.on_text else None
        return replace(request, messages=messages, max_tokens=limit, on_text=listener)

    def _larger(self, limit: int, reply: ChatReply | None) -> int:
        """Twice the limit, as far as the context allows."""
        context = self._context_tokens()
        if context is None or reply is None:
            return 2 * limit
        room = context - reply.usage.prompt_tokens - MARGIN_TOKENS
        return max(limit, min(2 * limit, room))

    def _failed(self, request: ChatRequest, fault: Fault, usage: Usage) -> CallFailed:
        wanted = request.output.__name__ if request.output else "text"
        advice = (
            f"raise roles.{request.role}.max_tokens"
            if fault.problem == "length"
            else f"roles.{request.role}.model may be too small for this task"
        )
        return CallFailed(
            f"The model of role {request.role} gave no usable {wanted} in two attempts "
            f"({fault.reason}): {advice}.",
            problem=fault.problem,
            role=request.role,
            usage=usage,
            attempts=2,
        )


def _in_mode(request: ChatRequest, mode: StructuredMode, *, with_schema: bool) -> ChatRequest:
    """The request as the mode wants it; the schema stands in the prompt where it must be read."""
    if request.output is None or (mode == "json_schema" and not with_schema):
        return replace(request, mode=mode)
    schema = json.dumps(strict_schema(request.output), ensure_ascii=False)
    note = (
        f"Reply with one JSON object that fits this JSON schema, and nothing else:\n{schema}\n"
        "Do not repeat the schema: fill it in."
    )
    return replace(request, mode=mode, messages=_appended(request.messages, note))


def _appended(messages: tuple[Message, ...], note: str) -> tuple[Message, ...]:
    *before, last = messages
    if last.role != "user":
        return (*messages, Message("user", note))
    return (*before, replace(last, content=f"{last.content}\n\n{note}"))


def _too_long(error: ModelError) -> bool:
    return isinstance(error, EndpointError) and error.problem == "context_too_small"


def _unheard(piece: str) -> None:
    """Asks for a stream that nobody listens to, so that loops are noticed."""
