"""One call to an OpenAI-compatible chat completion: the innermost `ChatModel` of the stack."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hmars.errors import CallFailed, ModelError
from hmars.llm.clock import Clock, SystemClock
from hmars.llm.contract import ChatReply, ChatRequest
from hmars.llm.endpoint import Endpoint
from hmars.llm.failures import (
    ParameterRefused,
    Place,
    Transient,
    from_connection,
    from_status,
    timed_out,
)
from hmars.llm.payload import payload_of
from hmars.llm.reply import (
    ErrorInside,
    MalformedReply,
    StreamedBody,
    parse_body,
    read_events,
    read_reply,
)
from hmars.llm.retry import parse_retry_after
from hmars.llm.transport import ConnectionFailed, HttpReply
from hmars.model import Role, Usage
from hmars.settings import RoleSettings

CUT_BELOW = 0.8
CUT_BELOW_APPROXIMATE = 0.5
"""A server that counts fewer than this share of our own tokens has not read the whole prompt."""
CHARACTERS_PER_TOKEN = 4
BROKEN_OFF = frozenset({"error", "abort", "aborted", "cancelled"})


class OpenAIChat:
    """Sends a request once and says in the words of `hmars.errors` what came of it.

    Nothing is repeated here, except where the server refuses a parameter that is sent by default.
    """

    def __init__(
        self, endpoint: Endpoint, role: Role, settings: RoleSettings, clock: Clock | None = None
    ) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._clock = clock or SystemClock()
        self._place = Place(
            endpoint=endpoint.name,
            role=role,
            model=settings.model,
            url=endpoint.shown_url,
            redactor=endpoint.redactor,
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Ask once. A refused default parameter is given up for good and counted.

        Raises:
            CallFailed, EndpointError: as the contract says; passing failures are `Transient`.
        """
        dialect = self._endpoint.dialect(self._settings.model)
        spent = Usage()
        while True:
            sent = replace(dialect)
            try:
                reply = await self._once(request)
            except ParameterRefused as refused:
                # Another call may have learned it meanwhile: then `adapt` has nothing left to do.
                if not dialect.adapt(refused.parameter) and sent == dialect:
                    refused.usage = spent + Usage(calls=1)
                    raise
                self._tell(refused.parameter)
                paths = {f"{refused.parameter}_refused": 1}
                spent = spent + Usage(calls=1, retries=1, paths=paths)
            except ModelError as error:
                error.usage = spent + (error.usage or Usage(calls=1))
                raise
            else:
                return replace(reply, usage=spent + reply.usage)

    def _tell(self, parameter: str) -> None:
        if parameter == "temperature":
            self._endpoint.warn_once(
                f"temperature {self._settings.model}",
                f"The {self._place} does not take a temperature for '{self._settings.model}': "
                "its default is used.",
            )

    async def _once(self, request: ChatRequest) -> ChatReply:
        limit = self._endpoint.settings.timeout_s
        try:
            # Around everything, so that a trickle of bytes does not keep a call alive.
            async with asyncio.timeout(limit):
                body, streamed = await self._exchange(request)
        except TimeoutError:
            raise timed_out(self._place, limit) from None
        except ConnectionFailed as error:
            answered = self._endpoint.answered
            raise from_connection(error, self._place, answered_before=answered) from None
        except MalformedReply as error:
            raise self._transient(f"sent {error}") from None
        return self._checked(read_reply(body), request, streamed)

    async def _exchange(self, request: ChatRequest) -> tuple[dict[str, Any], StreamedBody | None]:
        stream = request.on_text is not None
        dialect = self._endpoint.dialect(self._settings.model)
        payload = payload_of(request, self._settings, dialect, stream=stream)
        url = self._endpoint.url("/chat/completions")
        headers = self._headers(request)
        if request.on_text is None:
            reply = await self._endpoint.transport.send("POST", url, payload, headers)
            return self._body(reply, request), None
        async with self._endpoint.transport.stream(url, payload, headers) as response:
            kind = response.headers.get("content-type", "")
            if response.status == 200 and "event-stream" in kind:
                self._endpoint.answered = True
                streamed = StreamedBody(request.on_text)
                body = await read_events(response.lines, streamed)
                if isinstance(body, ErrorInside):
                    failed = HttpReply(body.status, response.headers, body.text)
                    raise self._status_error(failed, request)
                return body, streamed
            text = "\n".join([line async for line in response.lines])
            body = self._body(HttpReply(response.status, response.headers, text), request)
        request.on_text(read_reply(body).text)
        return body, None

    def _body(self, reply: HttpReply, request: ChatRequest) -> dict[str, Any]:
        self._endpoint.answered = True
        if not 200 <= reply.status < 300:
            raise self._status_error(reply, request)
        body = parse_body(reply.text)
        if isinstance(body, ErrorInside):
            inside = HttpReply(body.status, reply.headers, body.text)
            raise self._status_error(inside, request)
        return body

    def _status_error(self, reply: HttpReply, request: ChatRequest) -> ModelError:
        wait = parse_retry_after(reply.headers, self._clock.wall())
        return from_status(reply, self._place, request.mode, wait)

    def _headers(self, request: ChatRequest) -> Mapping[str, str]:
        if not request.affinity:
            return {}
        key = request.affinity
        if not re.fullmatch(r"[A-Za-z0-9._:-]{1,128}", key):
            key = hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()
        return {self._endpoint.settings.affinity_header: key}

    def _checked(
        self, reply: ChatReply, request: ChatRequest, streamed: StreamedBody | None
    ) -> ChatReply:
        usage = reply.usage
        if streamed is not None and streamed.loop:
            extra = reply.extra | {"loop": streamed.loop}
            reply = replace(reply, finish_reason="loop", extra=extra)
        if usage.prompt_tokens == 0:
            usage = self._estimated(reply, request, streamed)
        elif self._is_cut(request, usage):
            raise CallFailed(
                f"The {self._place} read only {usage.prompt_tokens} of about "
                f"{request.prompt_tokens} prompt tokens: serve '{self._settings.model}' with a "
                "longer context (Ollama: num_ctx in a Modelfile, or OLLAMA_CONTEXT_LENGTH).",
                problem="prompt_cut",
                role=request.role,
                usage=usage,
            )
        if reply.finish_reason == "content_filter" or "refusal" in reply.extra:
            said = self._endpoint.redactor.clean(str(reply.extra.get("refusal", "")))[:200]
            raise CallFailed(
                f"The model of {self._place} refused to reply" + (f": {said}" if said else "."),
                problem="refusal",
                role=request.role,
                usage=usage,
            )
        if reply.finish_reason in BROKEN_OFF:
            raise self._transient("broke its reply off", usage)
        return replace(reply, usage=usage, model=reply.model or self._settings.model)

    def _is_cut(self, request: ChatRequest, usage: Usage) -> bool:
        if request.prompt_tokens is None:
            return False
        share = CUT_BELOW if request.prompt_tokens_exact else CUT_BELOW_APPROXIMATE
        return usage.prompt_tokens < share * request.prompt_tokens

    def _estimated(
        self, reply: ChatReply, request: ChatRequest, streamed: StreamedBody | None
    ) -> Usage:
        """A cost for a reply that reports none, marked as estimated."""
        if reply.finish_reason != "loop":  # a stream that we cut never gets to its usage
            self._endpoint.warn_once(
                "usage",
                f"The {self._place} does not report token usage: costs are estimates, and a cut "
                "prompt cannot be noticed.",
            )
        characters = sum(len(message.content) for message in request.messages)
        written = len(reply.text) + len(reply.reasoning)
        return Usage(
            calls=1,
            prompt_tokens=request.prompt_tokens or characters // CHARACTERS_PER_TOKEN,
            completion_tokens=streamed.chunks if streamed else written // CHARACTERS_PER_TOKEN,
            paths={"usage_estimated": 1},
        )

    def _transient(self, what: str, usage: Usage | None = None) -> Transient:
        return Transient(
            f"The {self._place} {what}: look at the server's log.",
            problem="server",
            role=self._place.role,
            usage=usage or Usage(calls=1),
        )
