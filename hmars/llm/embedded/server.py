"""One llama.cpp server in this process, through the wheel `xllamacpp`."""

from __future__ import annotations

import gc
import importlib
import secrets
from pathlib import Path
from typing import Any

from hmars.errors import ConfigError, MissingExtraError
from hmars.llm.embedded.plan import EnginePlan

HTTP_THREADS_OVER_SLOTS = 2
ERRORS_ONLY = 1
"""llama.cpp's own log goes to stderr; its errors may be the only trace of a crash."""


class EmbeddedServer:
    """Running from construction to `stop`, on a free port of loopback, with a key of its own.

    Construction loads the model and blocks for seconds: call it in a thread.

    Raises:
        MissingExtraError: xllamacpp is not installed.
        ConfigError: the model cannot be loaded.
    """

    def __init__(self, path: Path, plan: EnginePlan) -> None:
        try:
            library: Any = importlib.import_module("xllamacpp")
        except ImportError:
            raise MissingExtraError("The embedded engine", "embedded") from None
        self.path = path
        self.plan = plan
        # Other users of the machine can reach loopback, too: prompts hold documents.
        self.key = secrets.token_hex(16)
        try:
            self._server: Any = library.Server(self._parameters(library))
        except RuntimeError as error:
            raise ConfigError(
                f"llama.cpp cannot load the model {path} ({error}): the file may be damaged, of a "
                f"kind it does not know, or too large for {plan.slots} x {plan.context_tokens:,} "
                "tokens of context in the memory of this machine."
            ) from None
        # A server that is taken down before its loop has begun hangs for ever: this goes through
        # the loop and back.
        self._server.handle_metrics()

    @property
    def base_url(self) -> str:
        return f"{self._server.listening_address}/v1"

    def stop(self) -> None:
        """Close the port and end the threads. Safe to call twice."""
        if self._server is not None:
            self._server = None  # the last reference: its destructor waits for its threads
            gc.collect()

    def _parameters(self, library: Any) -> Any:  # noqa: ANN401 - the library has no types
        parameters = library.CommonParams()
        parameters.model.path = str(self.path)
        parameters.hostnames = ["127.0.0.1"]
        parameters.port = 0
        parameters.api_keys = [self.key]
        parameters.n_parallel = self.plan.slots
        parameters.n_ctx = self.plan.slots * self.plan.context_tokens
        parameters.kv_unified = False  # each slot has its own context, however long the others are
        parameters.fit_params = False  # would change the context behind our back
        parameters.cache_ram_mib = self.plan.cache_mb
        parameters.cpuparams.n_threads = self.plan.threads
        parameters.cpuparams_batch.n_threads = self.plan.threads
        parameters.n_threads_http = self.plan.slots + HTTP_THREADS_OVER_SLOTS
        parameters.endpoint_metrics = True
        parameters.endpoint_slots = False
        parameters.ui = False
        parameters.warmup = False
        parameters.verbosity = ERRORS_ONLY
        return parameters
