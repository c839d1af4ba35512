"""The wire through the `openai` async client on its aiohttp transport.

Keeps the same contract as `AioTransport` at three times its work for the processor; for whoever
needs what that client brings, such as its proxies. `python -m benchmarks.fanout` measures both.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
import openai

from hmars.llm.endpoint import Endpoint
from hmars.llm.redact import RedactingFilter, Redactor
from hmars.llm.transport import HttpReply, HttpStream, Transport, connection_failure, encode

JSON_BODY = {"Content-Type": "application/json"}


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


def openai_transport(endpoint: Endpoint) -> Transport:
    """For `ModelStack(..., transport=openai_transport)`."""
    return OpenAITransport(
        endpoint.shown_url, endpoint.key, endpoint.headers, endpoint.pool, endpoint.redactor
    )
