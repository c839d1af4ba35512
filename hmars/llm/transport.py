"""Bytes over the wire: what the chat client needs of an HTTP library.

The reply's body is handed up as text and read by `hmars.llm.reply`, which must cope with more than
the well-formed replies that typed clients expect.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import aiohttp

ConnectionProblem = Literal["refused", "dns", "tls", "dropped"]


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole HTTP response. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class HttpStream:
    """A response whose lines are read as they arrive."""

    status: int
    headers: Mapping[str, str]
    lines: AsyncIterator[str]


class ConnectionFailed(Exception):
    """No whole HTTP response came back."""

    def __init__(self, problem: ConnectionProblem, detail: str) -> None:
        super().__init__(detail)
        self.problem: ConnectionProblem = problem


class Transport(Protocol):
    """One connection pool. Has no time limit and repeats nothing: that is the callers' business."""

    async def send(
        self,
        method: Literal["GET", "POST"],
        url: str,
        payload: Mapping[str, Any] | None,
        headers: Mapping[str, str],
    ) -> HttpReply:
        """Raises: ConnectionFailed."""
        ...

    def stream(
        self, url: str, payload: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[HttpStream]:
        """Raises: ConnectionFailed, also while lines are read."""
        ...

    async def close(self) -> None: ...


def encode(payload: Mapping[str, Any]) -> bytes:
    """JSON in UTF-8. A lone surrogate becomes the JSON escape that stands for it."""
    return json.dumps(payload, ensure_ascii=False).encode("utf-8", "backslashreplace")


def connection_failure(error: BaseException) -> ConnectionFailed:
    """What kind of failure this was, from the first exception in its chain that tells."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    for cause in chain:
        if isinstance(cause, aiohttp.ClientConnectorDNSError):
            return ConnectionFailed("dns", "the host name is not known")
        if isinstance(cause, aiohttp.ClientSSLError):
            return ConnectionFailed("tls", str(cause))
        if isinstance(cause, aiohttp.ClientConnectorError):
            return ConnectionFailed("refused", cause.strerror or "the connection was refused")
    return ConnectionFailed("dropped", "the connection was closed before the reply was complete")
