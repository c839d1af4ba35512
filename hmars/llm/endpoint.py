"""One server as the roles that use it share it: address, key, connections and what was learned."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit, urlunsplit

from hmars.errors import ConfigError
from hmars.llm.aio import AioTransport
from hmars.llm.contract import Notify
from hmars.llm.guard import check_allowed, is_local
from hmars.llm.payload import Dialect
from hmars.llm.redact import Redactor
from hmars.llm.transport import HttpReply, Transport
from hmars.settings import EndpointSettings

NO_KEY = ""
"""Where no key is needed, none is sent."""
SPARE_CONNECTIONS = 8

TransportMaker = Callable[["Endpoint"], Transport]


class Endpoint:
    """A server under its name in the profile. Opens no connection before the first call.

    Raises:
        ConfigError: `base_url` is no URL, is forbidden here, or needs a key that is not there.
    """

    def __init__(
        self,
        name: str,
        settings: EndpointSettings,
        *,
        warn: Notify,
        transport: TransportMaker | None = None,
    ) -> None:
        parts = urlsplit(settings.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"endpoints.{name}.base_url is not an http(s) URL: write it like "
                "http://localhost:8000/v1."
            )
        check_allowed(settings.base_url, name)
        self.name = name
        self.settings = settings
        self.answered = False
        self.key = _key(name, settings)
        self.headers = {
            header: value.get_secret_value() for header, value in settings.headers.items()
        }
        self.redactor = Redactor(_secrets(self.key, self.headers, parts.query, parts.password))
        self.local = is_local(settings.base_url)
        self.pool = settings.in_flight + SPARE_CONNECTIONS
        self._parts = parts._replace(path=parts.path.rstrip("/"), fragment="")
        self._dialects: dict[str, Dialect] = {}
        self._warn = warn
        self._warned: set[str] = set()
        self.transport: Transport = transport(self) if transport else aio_transport(self)

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r}, {self.shown_url!r})"

    @property
    def shown_url(self) -> str:
        """The address without query and user, for messages."""
        host = self._parts.netloc.rpartition("@")[2]
        return urlunsplit(self._parts._replace(netloc=host, query=""))

    def url(self, path: str) -> str:
        """Where `path` is served, below the base URL, with its query."""
        return urlunsplit(self._parts._replace(path=self._parts.path + path))

    def root_url(self, path: str) -> str:
        """Where `path` is served beside `/v1`, as llama.cpp does with its own paths."""
        root = self._parts.path.removesuffix("/v1")
        return urlunsplit(self._parts._replace(path=root + path))

    def dialect(self, model: str) -> Dialect:
        return self._dialects.setdefault(model, Dialect(self.settings.max_tokens_field))

    def warn_once(self, topic: str, message: str) -> None:
        """Tell the user something that is the same for every call, once."""
        if topic not in self._warned:
            self._warned.add(topic)
            self._warn(self.redactor.clean(message))

    async def get(self, url: str) -> HttpReply:
        reply = await self.transport.send("GET", url, None, {})
        self.answered = True
        return reply

    async def close(self) -> None:
        await self.transport.close()


def aio_transport(endpoint: Endpoint) -> Transport:
    return AioTransport(endpoint.key, endpoint.headers, endpoint.pool, use_proxy=not endpoint.local)


def _key(name: str, settings: EndpointSettings) -> str:
    if settings.api_key is not None:
        return settings.api_key.get_secret_value()
    if settings.api_key_env is not None:
        key = os.environ.get(settings.api_key_env, "").strip()
        if key:
            return key
        if not is_local(settings.base_url):
            raise ConfigError(
                f"endpoints.{name} needs a key: set the environment variable "
                f"{settings.api_key_env}."
            )
    elif not is_local(settings.base_url) and not settings.headers and "?" not in settings.base_url:
        raise ConfigError(
            f"endpoints.{name} needs a key: set endpoints.{name}.api_key_env to the name of an "
            "environment variable that holds it."
        )
    return NO_KEY


def _secrets(key: str, headers: Mapping[str, str], query: str, password: str | None) -> list[str]:
    values = [pair.partition("=")[2] for pair in query.split("&")]
    found = [*headers.values(), *values, password or ""]
    return found if key == NO_KEY else [key, *found]
