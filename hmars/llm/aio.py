"""The wire straight on aiohttp: the least work for the processor where many calls fan out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import aiohttp
from multidict import CIMultiDictProxy
from yarl import URL

from hmars.llm.transport import HttpReply, HttpStream, connection_failure, encode

LINE_LIMIT = 4 * 1024 * 1024
"""Bytes in one line of a streamed reply; aiohttp's own limit is too short for a long last one."""


class AioTransport:
    """One aiohttp session, made in the running loop at the first call."""

    def __init__(self, key: str, headers: Mapping[str, str], pool: int, *, use_proxy: bool) -> None:
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key and "authorization" not in {name.lower() for name in headers}:
            self._headers["Authorization"] = f"Bearer {key}"
        self._headers |= headers
        self._pool = pool
        self._use_proxy = use_proxy
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._pool),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                trust_env=self._use_proxy,
                read_bufsize=LINE_LIMIT // 2,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def send(
        self,
        method: Literal["GET", "POST"],
        url: str,
        payload: Mapping[str, Any] | None,
        headers: Mapping[str, str],
    ) -> HttpReply:
        data = None if payload is None else encode(payload)
        try:
            async with self._open().request(
                method, URL(url, encoded=True), data=data, headers=headers, allow_redirects=False
            ) as response:
                body = await response.read()
                return HttpReply(
                    response.status, _lower(response.headers), body.decode("utf-8", "replace")
                )
        except (aiohttp.ClientError, OSError) as error:
            raise connection_failure(error) from None

    @asynccontextmanager
    async def stream(
        self, url: str, payload: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncGenerator[HttpStream, None]:
        data = encode(payload)
        try:
            response = await self._open().post(
                URL(url, encoded=True), data=data, headers=headers, allow_redirects=False
            )
        except (aiohttp.ClientError, OSError) as error:
            raise connection_failure(error) from None
        try:
            yield HttpStream(response.status, _lower(response.headers), _lines(response))
        finally:
            response.close()  # not `release`: a reply cut half way must end at the server, too

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[str]:
    try:
        async for line in response.content:
            yield line.decode("utf-8", "replace").rstrip("\r\n")
    except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: a line too long
        raise connection_failure(error) from None


def _lower(headers: CIMultiDictProxy[str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
