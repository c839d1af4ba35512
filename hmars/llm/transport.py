"""Bytes over the wire: what the chat client needs of an HTTP library, and `openai` as one.

The reply's body is handed up as text and read by `hmars.llm.reply`, which must cope with more than
the well-formed replies that typed clients expect.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import aiohttp
import httpx2
import openai

from hmars.llm.redact import RedactingFilter, Redactor

JSON_BODY = {"Content-Type": "application/json"}
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


class OpenAITransport:
    """The `openai` async client on its aiohttp transport, used for its wire and pool only."""

    def __init__(
        self, base_url: str, key: str, headers: Mapping[str, str], pool: int, redactor: Redactor
    ) -> None:
        # httpx2 logs whole URLs, and a key may stand in a query.
        self._filter = RedactingFilter(redactor)
        self._logger = logging.getLogger("httpx2")
        self._logger.addFilter(self._filter)
        limits = httpx2.Limits(max_connections=pool, max_keepalive_connections=pool)
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=key or "none",
            # "" keeps OPENAI_ORG_ID and OPENAI_PROJECT_ID of the environment off foreign servers.
            organization="",
            project="",
            default_headers={"OpenAI-Organization": openai.omit, "OpenAI-Project": openai.omit}
            | dict(headers),  # pyright: ignore[reportArgumentType]
            max_retries=0,
            timeout=None,
            http_client=openai.DefaultAioHttpClient(
                limits=limits, timeout=None, follow_redirects=False
            ),
        )

    async def send(
        self,
        method: Literal["GET", "POST"],
        url: str,
        payload: Mapping[str, Any] | None,
        headers: Mapping[str, str],
    ) -> HttpReply:
        try:
            if method == "GET":
                response = await self._client.get(
                    url, cast_to=httpx2.Response, options={"headers": dict(headers)}
                )
            else:
                response = await self._client.post(
                    url,
                    cast_to=httpx2.Response,
                    content=encode(payload or {}),
                    options={"headers": JSON_BODY | dict(headers)},
                )
        except openai.APIStatusError as error:
            response = error.response
        except openai.OpenAIError as error:
            raise connection_failure(error) from None
        return HttpReply(response.status_code, response.headers, response.text)

    @asynccontextmanager
    async def stream(
        self, url: str, payload: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncGenerator[HttpStream, None]:
        try:
            response: Any = await self._client.post(
                url,
                cast_to=httpx2.Response,
                content=encode(payload),
                options={"headers": JSON_BODY | dict(headers)},
                stream=True,
                stream_cls=openai.AsyncStream[Any],
            )
        except openai.APIStatusError as error:
            response = error.response
        except openai.OpenAIError as error:
            raise connection_failure(error) from None
        try:
            yield HttpStream(response.status_code, response.headers, _lines(response))
        finally:
            await response.aclose()

    async def close(self) -> None:
        self._logger.removeFilter(self._filter)
        await self._client.close()


async def _lines(response: httpx2.Response) -> AsyncIterator[str]:
    try:
        async for line in response.aiter_lines():
            yield line
    except httpx2.HTTPError as error:
        raise connection_failure(error) from None


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
