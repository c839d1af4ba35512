"""The body of a chat completion as a `ChatReply`, streamed or whole.

Bodies come from many servers and small models, so every field is looked at as if it might be
missing or of another type.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from hmars.llm.contract import ChatReply, ToolCall
from hmars.llm.loops import LoopWatch
from hmars.model import Usage

Json = dict[str, Any]

LENGTH_REASONS = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
STOP_REASONS = frozenset({"", "stop", "eos", "end_turn", "stop_sequence", "eos_token", "complete"})
THINK, THOUGHT = "<think>", "</think>"


class MalformedReply(Exception):
    """The body is not a chat completion."""


@dataclass(frozen=True, slots=True)
class ErrorInside:
    """An error sent under HTTP 200."""

    status: int
    text: str


def parse_body(text: str) -> Json | ErrorInside:
    """The JSON object of a body.

    Raises:
        MalformedReply: not JSON, or no choice in it.
    """
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedReply("a reply that is not JSON") from None
    if not isinstance(body, dict):
        raise MalformedReply("a reply that is not a JSON object")
    body = cast(Json, body)
    error = body.get("error")
    if error:
        code: Any = cast(Json, error).get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
        return ErrorInside(status, text)
    if not _table(_first(body.get("choices"))):
        raise MalformedReply("a reply without choices")
    return body


def read_reply(body: Json) -> ChatReply:
    """The reply in a body that `parse_body` or `StreamedBody` made. Usage counts one call."""
    choice = _table(_first(body.get("choices")))
    message = _table(choice.get("message"))
    text, thought = split_thinking(_text(message.get("content")))
    reasoning = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    extra: Json = {}
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        extra["refusal"] = message["refusal"]
    alternatives = _alternatives(choice.get("logprobs"))
    if alternatives:
        extra["top_logprobs"] = alternatives
    if "cached_tokens" in _table(_table(body.get("usage")).get("prompt_tokens_details")):
        extra["reports_cached"] = True
    model = body.get("model")
    return ChatReply(
        text=text,
        finish_reason=_finish(choice.get("finish_reason")),
        reasoning=reasoning or thought,
        usage=_usage(body),
        model=model if isinstance(model, str) else "",
        tool_calls=_tool_calls(message.get("tool_calls")),
        extra=extra,
    )


def split_thinking(content: str) -> tuple[str, str]:
    """Text and thinking of a reply that has both in one string.

    Only thinking at the start is taken off: later, the marks may be quoted from a document. Some
    templates put the opening mark into the prompt, so the closing one may stand alone.
    """
    rest, thoughts = content.lstrip("\ufeff \t\r\n"), list[str]()
    if rest.startswith(("{", "[")):
        return content, ""
    if THINK not in rest and THOUGHT in rest:
        rest = THINK + rest
    while rest.startswith(THINK):
        thought, closed, rest = rest.removeprefix(THINK).partition(THOUGHT)
        thoughts.append(thought.strip())
        rest = rest.lstrip() if closed else ""
    return (rest, "\n".join(thoughts)) if thoughts else (content, "")


@dataclass
class StreamedBody:
    """Puts the chunks of a stream together into the body a whole reply would have."""

    on_text: Callable[[str], None]
    content: list[str] = field(default_factory=list[str])
    reasoning: list[str] = field(default_factory=list[str])
    calls: dict[int, Json] = field(default_factory=dict[int, Json])
    finish: str | None = None
    loop: str | None = None
    chunks: int = 0
    _head: Json = field(default_factory=dict[str, Any])
    _logprobs: Any = None
    _watch: LoopWatch = field(default_factory=LoopWatch)
    _shown: bool = False
    _held: str = ""

    def add(self, chunk: Json) -> None:
        """Take one chunk; `loop` is set once the reply runs in a circle."""
        for key in ("model", "usage", "timings"):
            if chunk.get(key):
                self._head[key] = chunk[key]
        choice = _table(_first(chunk.get("choices")))
        delta = _table(choice.get("delta")) or _table(choice.get("message"))
        self._logprobs = self._logprobs or choice.get("logprobs")
        self.finish = choice.get("finish_reason") or self.finish
        thought = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
        piece = _text(delta.get("content"))
        if thought:
            self.reasoning.append(thought)
        if piece:
            self.content.append(piece)
            self._show(piece)
        self.chunks += bool(piece or thought)
        self.loop = self.loop or self._watch.feed(piece or thought)
        if delta.get("refusal"):
            self._head["refusal"] = self._head.get("refusal", "") + _text(delta["refusal"])
        for call in cast(list[Any], delta.get("tool_calls") or []):
            self._add_call(_table(call))

    def body(self) -> Json:
        message: Json = {
            "content": "".join(self.content),
            "reasoning_content": "".join(self.reasoning),
            "refusal": self._head.get("refusal"),
            "tool_calls": [self.calls[index] for index in sorted(self.calls)],
        }
        choice = {"message": message, "finish_reason": self.finish, "logprobs": self._logprobs}
        return {**self._head, "choices": [choice]}

    def _add_call(self, part: Mapping[str, Any]) -> None:
        index = part.get("index")
        call = self.calls.setdefault(
            index if isinstance(index, int) else len(self.calls),
            {"id": "", "function": {"name": "", "arguments": ""}},
        )
        call["id"] = call["id"] or _text(part.get("id"))
        function = _table(part.get("function"))
        for key in ("name", "arguments"):
            call["function"][key] += _text(function.get(key))

    def _show(self, piece: str) -> None:
        """Pass text on, but not the thinking before it."""
        if self._shown:
            self.on_text(piece)
            return
        self._held += piece
        start = self._held.lstrip("\ufeff \t\r\n")
        if THINK.startswith(start[: len(THINK)]) or not start:
            if THOUGHT not in start:
                return
            start = start.partition(THOUGHT)[2].lstrip()
        if start:
            self._shown = True
            self.on_text(start)


async def read_events(lines: AsyncIterator[str], streamed: StreamedBody) -> Json | ErrorInside:
    """Read server-sent events until the reply is complete or has fallen into a loop.

    Raises:
        MalformedReply: an event is not JSON, or the stream ends without a finish reason.
    """
    async for line in lines:
        name, _, data = line.partition(":")
        if name == "error" and data.strip():
            return ErrorInside(500, data.strip())
        if name != "data" or not data.strip():
            continue
        if data.strip() == "[DONE]":
            break
        try:
            chunk: Any = json.loads(data)
        except (ValueError, RecursionError):
            raise MalformedReply("a streamed event that is not JSON") from None
        if isinstance(chunk, dict):
            chunk = cast(Json, chunk)
            if chunk.get("error"):
                return ErrorInside(500, data)
            streamed.add(chunk)
        if streamed.loop:
            return streamed.body()
    if streamed.finish is None:
        raise MalformedReply("a stream that ends in the middle")
    return streamed.body()


def _finish(value: object) -> str:
    reason = value.lower() if isinstance(value, str) else ""
    if reason in LENGTH_REASONS:
        return "length"
    return "stop" if reason in STOP_REASONS else reason


def _usage(body: Json) -> Usage:
    usage = _table(body.get("usage"))
    details = _table(usage.get("prompt_tokens_details"))
    cached = _count(details.get("cached_tokens")) or _count(usage.get("prompt_cache_hit_tokens"))
    if not cached:
        cached = _count(_table(body.get("timings")).get("cache_n"))
    prompt = _count(usage.get("prompt_tokens"))
    return Usage(
        calls=1,
        prompt_tokens=prompt,
        cached_tokens=min(cached, prompt),
        completion_tokens=_count(usage.get("completion_tokens")),
    )


def _alternatives(logprobs: Any) -> list[tuple[str, float]]:  # noqa: ANN401 - any JSON
    first = _table(_first(_table(logprobs).get("content")))
    found: dict[str, float] = {}
    for entry in [first, *cast(list[Any], first.get("top_logprobs") or [])]:
        token, value = _table(entry).get("token"), _table(entry).get("logprob")
        if isinstance(token, str) and isinstance(value, int | float):
            found[token] = float(value)
    return sorted(found.items(), key=lambda pair: -pair[1])


def _tool_calls(value: Any) -> tuple[ToolCall, ...]:  # noqa: ANN401 - any JSON
    calls: list[ToolCall] = []
    for number, entry in enumerate(cast(list[Any], value) if isinstance(value, list) else []):
        function = _table(_table(entry).get("function"))
        arguments = function.get("arguments")
        calls.append(
            ToolCall(
                id=_text(_table(entry).get("id")) or f"call_{number}",
                name=_text(function.get("name")),
                arguments=arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
            )
        )
    return tuple(calls)


def _text(value: Any) -> str:  # noqa: ANN401 - any JSON
    if isinstance(value, list):
        return "".join(_text(_table(part).get("text")) for part in cast(list[Any], value))
    return value if isinstance(value, str) else ""


def _table(value: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def _first(value: Any) -> Any:  # noqa: ANN401 - any JSON
    return cast(list[Any], value)[0] if isinstance(value, list) and value else None


def _count(value: Any) -> int:  # noqa: ANN401 - any JSON
    return int(value) if isinstance(value, int | float) and value > 0 else 0
