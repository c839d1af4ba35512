"""What a scripted server says and sees: replies, requests, and the smallest object of a schema."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

Json = dict[str, Any]


class Gate:
    """Holds replies back until the test opens it."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def open(self) -> None:
        self._open.set()
        for loop, event in self._waiting:
            loop.call_soon_threadsafe(event.set)

    async def passed(self) -> None:
        event = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), event))
        if not self._open.is_set():
            await event.wait()


@dataclass
class Reply:
    """What the server sends for one request."""

    content: str | None = "ok"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    error: Any = None
    """The value of `error` in the body of a status other than 200."""
    raw: str | bytes | None = None
    """The whole body, as it is."""
    finish_reason: str | None = "stop"
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[Json] | None = None
    logprobs: list[tuple[str, float]] | None = None
    """Alternatives of the first token."""
    usage: Mapping[str, Any] | Literal["count", "none"] = "count"
    pieces: Iterable[str] | None = None
    """Pieces of a streamed reply; may be endless, then it is written until the client goes."""
    gate: Gate | None = None
    hang: bool = False
    """Never answers; ends when the client goes."""
    trickle: bool = False
    """Sends the headers and then one byte now and then, for ever."""
    drop: Literal["before", "mid_body"] | None = None


@dataclass(frozen=True)
class Seen:
    """A request as the server saw it."""

    number: int
    """From 1, in order of arrival."""
    body: Json
    headers: Mapping[str, str]
    """Names in any case."""
    path: str

    @property
    def messages(self) -> list[Json]:
        return cast(list[Json], self.body.get("messages", []))

    @property
    def text(self) -> str:
        """All messages joined."""
        return "\n".join(str(message.get("content") or "") for message in self.messages)

    @property
    def max_tokens(self) -> int:
        return int(self.body.get("max_tokens", self.body.get("max_completion_tokens", 0)))

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def format(self) -> str:
        """`json_schema`, `json_object` or `text`."""
        return str(cast(Json, self.body.get("response_format", {})).get("type", "text"))

    @property
    def schema(self) -> Json | None:
        """The schema in `response_format`, or the one that stands in the prompt."""
        wanted = cast(Json, self.body.get("response_format", {})).get("json_schema")
        if wanted:
            return cast(Json, wanted["schema"])
        for position in _braces(self.text):
            try:
                value, _ = json.JSONDecoder().raw_decode(self.text, position)
            except ValueError:
                continue
            if isinstance(value, dict) and "properties" in value:
                return cast(Json, value)
        return None


def smallest(schema: Json, items: int = 1) -> Any:
    """The smallest value that fits a JSON schema, with `items` entries in each list."""
    return _smallest(schema, cast(Json, schema.get("$defs", {})), items)


def _smallest(node: Json, definitions: Json, items: int) -> Any:
    if "$ref" in node:
        return _smallest(definitions[str(node["$ref"]).rsplit("/", 1)[-1]], definitions, items)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in node:
            return _smallest(node[key][0], definitions, items)
    if "const" in node:
        return node["const"]
    if "enum" in node:
        return node["enum"][0]
    kind = node.get("type")
    if kind == "object" or "properties" in node:
        properties = cast(dict[str, Json], node.get("properties", {}))
        return {name: _smallest(entry, definitions, items) for name, entry in properties.items()}
    if kind == "array":
        number = max(items, int(node.get("minItems", 0)))
        entry = cast(Json, node.get("items", {}))
        return [_smallest(entry, definitions, items) for _ in range(number)]
    if kind == "integer":
        return int(node.get("minimum", 1))
    if kind == "number":
        return float(node.get("minimum", 1.0))
    return {"boolean": True, "null": None}.get(str(kind), "text")


def _braces(text: str) -> Iterator[int]:
    position = text.rfind("\n{")
    while position >= 0:
        yield position + 1
        position = text.rfind("\n{", 0, position)
