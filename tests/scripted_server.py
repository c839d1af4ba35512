"""An OpenAI-compatible server on a real loopback socket that says what a test wants it to say.

    with ScriptedServer(reply="hello") as server:      # or a Reply, or a function of the request
        server.on("DENSE-MARK", Reply(status=500))     # rules come first, the latest added wins
        ...  server.base_url, server.requests, server.peak, server.in_flight

A request without a rule and without `reply` gets the smallest object that fits the JSON schema in
its `response_format` or prompt, or "ok". The server runs in a thread with a loop of its own.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self, cast

from aiohttp import web
from multidict import CIMultiDict

from tests.scripted_messages import Gate, Json, Reply, Seen, smallest

__all__ = ["Gate", "Reply", "ScriptedServer", "Seen", "smallest"]

GUARD_S = 10.0
"""No wait of a test lasts longer: it fails instead of hanging."""


Says = str | Reply | None
Speaker = Says | Callable[[Seen], Says]
Condition = str | Callable[[Seen], bool] | None


@dataclass
class _Rule:
    when: Condition
    reply: Speaker
    times: int | None

    def fits(self, seen: Seen) -> bool:
        if self.times == 0 or (isinstance(self.when, str) and self.when not in seen.text):
            return False
        return not callable(self.when) or self.when(seen)


class ScriptedServer:
    """See the module. Close it by leaving the `with` block: nothing is left running."""

    def __init__(
        self,
        reply: Speaker = None,
        *,
        models: Iterable[str] = ("scripted",),
        formats: Iterable[str] = ("json_schema", "json_object"),
        api_key: str | None = None,
        cap_prompt_tokens: int | None = None,
        context_limit: int | None = None,
        prefix_cache: bool = False,
        items: int = 1,
    ) -> None:
        """Args:
        reply: what to say where no rule fits.
        models: names it knows; others get 404.
        formats: kinds of `response_format` it takes; others get 400.
        api_key: demanded from every request, else 401.
        cap_prompt_tokens: reports at most this many, as a server that cuts prompts does.
        context_limit: longer prompts get 400 in the words of vLLM.
        prefix_cache: reports how many tokens an earlier prompt began with, too.
        items: how many items lists of default replies have.
        """
        self.requests: list[Seen] = []
        self.gets: list[str] = []
        self.in_flight = 0
        self.peak = 0
        self.broken_off = 0
        """Requests whose client went away before the reply was complete."""
        self.models = tuple(models)
        self.formats = tuple(formats)
        self.api_key = api_key
        self.cap_prompt_tokens = cap_prompt_tokens
        self.context_limit = context_limit
        self.prefix_cache = prefix_cache
        self.items = items
        self.port = 0
        self._reply = reply
        self._rules: list[_Rule] = []
        self._watchers: list[
            tuple[Callable[[], bool], asyncio.AbstractEventLoop, asyncio.Future[None]]
        ] = []
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="scripted-server", daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def on(self, when: Condition, reply: Speaker, *, times: int | None = None) -> None:
        """Say `reply` where `when` (a substring of the prompt, or a function) fits."""
        with self._lock:
            self._rules.insert(0, _Rule(when, reply, times))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait, in the loop of the test, until something that the server counts has happened."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            if condition():
                return
            self._watchers.append((condition, loop, future))
        async with asyncio.timeout(GUARD_S):
            await future

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(GUARD_S):
            raise RuntimeError("the scripted server did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(GUARD_S)

    # ------------------------------------------------------------ in the thread of the server

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        app = web.Application(client_max_size=256 * 1024 * 1024)
        app.router.add_get("/{path:.*}", self._get)
        app.router.add_post("/v1/chat/completions", self._post)
        runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.0
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        self.port = cast(int, runner.addresses[0][1])
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _get(self, request: web.Request) -> web.Response:
        self.gets.append(request.path)
        if not self._allowed(request):
            return _error(401, {"message": "Incorrect API key provided", "code": "invalid_api_key"})
        if request.path != "/v1/models":
            return _error(404, {"message": "Not Found"})
        entries: list[Json] = [{"id": name, "object": "model"} for name in self.models]
        for entry in entries:
            if self.context_limit:
                entry["max_model_len"] = self.context_limit
        return web.json_response({"object": "list", "data": entries})

    async def _post(self, request: web.Request) -> web.StreamResponse:
        body = cast(Json, await request.json())
        with self._lock:
            number = len(self.requests) + 1
            seen = Seen(number, body, CIMultiDict(request.headers), request.path_qs)
            self.requests.append(seen)
            self.in_flight += 1
            self.peak = max(self.peak, self.in_flight)
        self._tell()
        complete = False
        try:
            response = await self._answer(request, seen)
            complete = True
            return response
        finally:
            with self._lock:
                self.in_flight -= 1
                self.broken_off += not complete
            self._tell()

    def _tell(self) -> None:
        with self._lock:
            met = [watcher for watcher in self._watchers if watcher[0]()]
            self._watchers = [watcher for watcher in self._watchers if watcher not in met]
        for _, loop, future in met:
            loop.call_soon_threadsafe(lambda f=future: None if f.done() else f.set_result(None))

    def _allowed(self, request: web.Request) -> bool:
        wanted = f"Bearer {self.api_key}"
        return self.api_key is None or request.headers.get("Authorization") == wanted

    async def _answer(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        if not self._allowed(request):
            return _error(401, {"message": "Incorrect API key provided", "code": "invalid_api_key"})
        refused = self._refused(seen)
        if refused is not None:
            return refused
        reply = self._pick(seen)
        if reply.gate is not None:
            await reply.gate.passed()
        if reply.hang:
            await asyncio.Event().wait()
        if reply.drop == "before":
            return _dropped(request)
        if reply.status != 200 and reply.raw is None:
            error = reply.error if reply.error is not None else {"message": "scripted"}
            return _error(reply.status, error, reply.headers)
        if reply.raw is not None:
            return _raw(reply)
        if reply.trickle or reply.drop == "mid_body":
            return await self._stumble(request, seen, reply)
        if seen.stream:
            return await self._stream(request, seen, reply)
        return web.json_response(self._whole(seen, reply), headers=dict(reply.headers))

    def _refused(self, seen: Seen) -> web.Response | None:
        if seen.body.get("model") not in self.models:
            name = seen.body.get("model")
            return _error(
                404,
                {"message": f"The model `{name}` does not exist.", "code": "model_not_found"},
            )
        if seen.format != "text" and seen.format not in self.formats:
            return _error(400, {"message": f"response_format {seen.format} is not supported"})
        wanted = self._tokens(seen) + seen.max_tokens
        if self.context_limit and wanted > self.context_limit:
            return _error(
                400,
                {
                    "message": f"This model's maximum context length is {self.context_limit} "
                    f"tokens. However, you requested {wanted} tokens. Please reduce the length.",
                    "code": 400,
                },
            )
        return None

    def _pick(self, seen: Seen) -> Reply:
        with self._lock:
            rule = next((rule for rule in self._rules if rule.fits(seen)), None)
            if rule is not None and rule.times is not None:
                rule.times -= 1
        for speaker in (rule.reply if rule else None, self._reply):
            said = speaker(seen) if callable(speaker) else speaker
            if said is not None:
                return said if isinstance(said, Reply) else Reply(said)
        schema = seen.schema
        return Reply(json.dumps(smallest(schema, self.items)) if schema else "ok")

    def _tokens(self, seen: Seen) -> int:
        return max(1, len(json.dumps(seen.messages, ensure_ascii=False)) // 4)

    def _usage(self, seen: Seen, reply: Reply) -> Json | None:
        if reply.usage == "none":
            return None
        if reply.usage != "count":
            return dict(reply.usage)
        prompt = self._tokens(seen)
        written = len(reply.content or "") // 4 + 1
        shown = min(prompt, self.cap_prompt_tokens or prompt)
        usage: Json = {"prompt_tokens": shown, "completion_tokens": written}
        usage["total_tokens"] = shown + written
        if self.prefix_cache:
            usage["prompt_tokens_details"] = {"cached_tokens": min(shown, self._cached(seen))}
        return usage

    def _cached(self, seen: Seen) -> int:
        earlier = self.requests[: seen.number - 1]
        return max((_common(seen.text, other.text) for other in earlier), default=0) // 4

    def _whole(self, seen: Seen, reply: Reply) -> Json:
        message: Json = {"role": "assistant", "content": reply.content}
        for key, value in (
            ("reasoning_content", reply.reasoning),
            ("refusal", reply.refusal),
            ("tool_calls", reply.tool_calls),
        ):
            if value is not None:
                message[key] = value
        choice: Json = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
        if reply.logprobs:
            choice["logprobs"] = _logprobs(reply.logprobs)
        body: Json = {
            "id": f"scripted-{seen.number}",
            "object": "chat.completion",
            "model": seen.body.get("model"),
            "choices": [choice],
        }
        usage = self._usage(seen, reply)
        return body if usage is None else {**body, "usage": usage}

    async def _stumble(self, request: web.Request, seen: Seen, reply: Reply) -> web.StreamResponse:
        data = json.dumps(self._whole(seen, reply)).encode()
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Content-Length": str(len(data) + 1)}
        )
        await response.prepare(request)
        await response.write(data[: len(data) // 2])
        if reply.drop == "mid_body":
            return _dropped(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.02)

    async def _stream(self, request: web.Request, seen: Seen, reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", **reply.headers}
        )
        await response.prepare(request)
        for delta in self._deltas(reply):
            choice: Json = {"index": 0, "delta": delta, "finish_reason": None}
            await _event(response, {"model": seen.body["model"], "choices": [choice]})
        last: Json = {"index": 0, "delta": {}, "finish_reason": reply.finish_reason}
        await _event(response, {"model": seen.body["model"], "choices": [last]})
        usage = self._usage(seen, reply)
        options = cast(Json, seen.body.get("stream_options", {}))
        if usage is not None and options.get("include_usage"):
            await _event(response, {"choices": [], "usage": usage})
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    def _deltas(self, reply: Reply) -> Iterator[Json]:
        yield {"role": "assistant", "content": ""}
        for piece in _cut(reply.reasoning or ""):
            yield {"reasoning_content": piece}
        for piece in reply.pieces if reply.pieces is not None else _cut(reply.content or ""):
            yield {"content": piece}
        if reply.refusal is not None:
            yield {"refusal": reply.refusal}
        for index, call in enumerate(reply.tool_calls or []):
            yield {"tool_calls": [{"index": index, **call}]}


def _common(first: str, second: str) -> int:
    for position, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return position
    return min(len(first), len(second))


def _cut(text: str, size: int = 12) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _logprobs(alternatives: list[tuple[str, float]]) -> Json:
    entries = [{"token": token, "logprob": value} for token, value in alternatives]
    return {"content": [{**entries[0], "top_logprobs": entries}]}


def _error(status: int, error: object, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.json_response({"error": error}, status=status, headers=dict(headers or {}))


def _raw(reply: Reply) -> web.Response:
    body = reply.raw.encode() if isinstance(reply.raw, str) else reply.raw
    headers = {"Content-Type": "application/json", **reply.headers}
    return web.Response(body=body, status=reply.status, headers=headers)


def _dropped(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _event(response: web.StreamResponse, chunk: Json) -> None:
    await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
