"""The embedded engines of one profile: started when models are first needed, shared by roles."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from pydantic import SecretStr

from hmars.errors import ConfigError
from hmars.llm.contract import Notify
from hmars.llm.embedded.machine import Machine, this_machine
from hmars.llm.embedded.plan import EnginePlan, need_tokens, plan_engine
from hmars.llm.embedded.server import EmbeddedServer
from hmars.llm.embedded.shape import model_shape
from hmars.settings import EndpointSettings, Profile
from hmars.tokens.hub import model_path

StartServer = Callable[[Path, EnginePlan], EmbeddedServer]


class EmbeddedEngines:
    """Turns a profile with embedded endpoints into one whose endpoints can be called.

        engines = EmbeddedEngines(profile)
        served = await asyncio.to_thread(engines.serve)      # a profile for ModelStack
        ...
        await asyncio.to_thread(engines.close)

    May be used from several threads; a profile without embedded endpoints is returned as it is.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        machine: Machine | None = None,
        warn: Notify | None = None,
        start: StartServer = EmbeddedServer,
    ) -> None:
        self._profile = profile
        self._machine = machine
        self._warn = warn
        self._start = start
        self._lock = threading.Lock()
        self._servers: dict[Path, EmbeddedServer] = {}
        self._served: Profile | None = None

    def serve(self) -> Profile:
        """Start what is not running yet; the profile with the addresses of the engines.

        Raises:
            ConfigError: no model file is named, or it cannot be found, downloaded or loaded.
            MissingExtraError: xllamacpp is not installed.
        """
        with self._lock:
            if self._served is None:
                try:
                    self._served = self._serve()
                except BaseException:
                    self._stop()
                    raise
            return self._served

    @property
    def servers(self) -> dict[Path, EmbeddedServer]:
        """What is running, by model file. A copy."""
        return dict(self._servers)

    @property
    def cache_tokens(self) -> int | None:
        """Tokens that the smallest prompt cache holds; None where nothing is embedded."""
        sizes = [server.plan.cache_tokens for server in self._servers.values()]
        return min(sizes) if sizes else None

    def close(self) -> None:
        """Stop all engines. Safe to call twice; `serve` starts them again."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        self._served = None
        for server in self._servers.values():
            server.stop()
        self._servers.clear()

    def _serve(self) -> Profile:
        used = {settings.endpoint for settings in self._profile.roles.values()}
        embedded = {
            name: settings
            for name, settings in self._profile.endpoints.items()
            if settings.engine == "embedded" and name in used
        }
        if not embedded:
            return self._profile
        sharing: dict[Path, list[str]] = {}
        for name, settings in embedded.items():
            sharing.setdefault(_file(name, settings), []).append(name)
        endpoints = dict(self._profile.endpoints)
        for path, names in sharing.items():
            server = self._server(path, frozenset(names), endpoints[names[0]])
            for name in names:
                endpoints[name] = _address(endpoints[name], server)
        # `model` names the file of embedded endpoints, and there are none any more.
        return self._profile.model_copy(update={"endpoints": endpoints, "model": None})

    def _server(
        self, path: Path, names: frozenset[str], settings: EndpointSettings
    ) -> EmbeddedServer:
        machine = self._machine or this_machine()
        shape = model_shape(path)
        plan = plan_engine(settings, need_tokens(self._profile, names), shape, machine)
        server = self._servers[path] = self._start(path, plan)
        return server


def _file(name: str, settings: EndpointSettings) -> Path:
    if not settings.model_file:
        raise ConfigError(
            f"endpoints.{name} has no model: name a GGUF file with --set model=PATH.gguf, or one "
            "of a hub with --set model=hf:OWNER/REPOSITORY:FILE.gguf."
        )
    return model_path(settings.model_file)


def _address(settings: EndpointSettings, server: EmbeddedServer) -> EndpointSettings:
    """The same endpoint as an address; no more calls in flight than slots, the rest would wait."""
    update: dict[str, object] = {
        "engine": "http",
        "base_url": server.base_url,
        "api_key": SecretStr(server.key),
    }
    if "in_flight" not in settings.model_fields_set:
        update["in_flight"] = server.plan.slots
    return settings.model_copy(update=update)
