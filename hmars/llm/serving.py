"""Start the servers of a profile's local endpoints with `vllm serve`, and stop them all."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

from hmars.errors import ConfigError, HmarsError, MissingExtraError
from hmars.fanout import fan_out
from hmars.llm.guard import is_loopback
from hmars.model import Role
from hmars.settings import EndpointSettings, Profile, RoleSettings

POLL_S = 1.0
STDERR = 2
PATIENCE_S = 20.0
"""How long a server may take to end when it is asked to, before it is killed."""
WITH_TOOLS: frozenset[Role] = frozenset({"lead", "read"})
FAMILIES = (
    ("qwen3.5", "qwen3_xml", "qwen3"),
    ("qwen3-coder", "qwen3_xml", None),
    ("qwen3", "hermes", "qwen3"),
    ("deepseek-r1", "deepseek_v3", "deepseek_r1"),
    ("llama-3", "llama3_json", None),
    ("mistral", "mistral", None),
)
"""Part of a model's name, its tool-call parser and its reasoning parser."""
TOOL_PARSER = "hermes"


class ServerEnded(HmarsError):
    """A server that was started has ended, or never became healthy."""


@dataclass(frozen=True, slots=True)
class ServeCommand:
    """How one endpoint is served. The key goes through the environment, never the command line."""

    endpoint: str
    model: str
    base_url: str
    words: tuple[str, ...]
    key_env: str | None = None

    def __str__(self) -> str:
        return shlex.join(self.words)


def serve_commands(profile: Profile, executable: str = "vllm") -> list[ServeCommand]:
    """One command for each local HTTP endpoint that the roles use.

    Args:
        executable: `vllm`, a path of it, or several words that take `--model`, such as
            `python -m vllm.entrypoints.openai.api_server`.

    Raises:
        ConfigError: nothing to serve, or roles of one endpoint that want different models.
    """
    by_endpoint: dict[str, list[tuple[Role, RoleSettings]]] = {}
    for role, settings in profile.roles.items():
        endpoint = profile.endpoints[settings.endpoint]
        if endpoint.engine == "http" and is_loopback(endpoint.base_url):
            by_endpoint.setdefault(settings.endpoint, []).append((role, settings))
    if not by_endpoint:
        raise ConfigError(
            f"The profile '{profile.name}' has no endpoint on this machine that could be served."
        )
    return [
        _command(name, profile.endpoints[name], roles, executable)
        for name, roles in by_endpoint.items()
    ]


def _command(
    name: str,
    endpoint: EndpointSettings,
    roles: Sequence[tuple[Role, RoleSettings]],
    executable: str,
) -> ServeCommand:
    models = sorted({settings.model for _, settings in roles})
    if len(models) > 1:
        raise ConfigError(
            f"endpoints.{name} is to serve {' and '.join(models)}, and vLLM serves one model at an "
            "address: give each model an endpoint of its own."
        )
    parts = urlsplit(endpoint.base_url)
    words = [*_start(executable, models[0]), "--served-model-name", models[0]]
    words += ["--host", parts.hostname or "127.0.0.1", "--port", str(parts.port or 80)]
    words += ["--enable-prefix-caching", "--enable-prompt-tokens-details"]
    contexts = [settings.context_tokens for _, settings in roles if settings.context_tokens]
    if contexts:
        words += ["--max-model-len", str(max(contexts))]
    words += _parsers(models[0], endpoint, any(role in WITH_TOOLS for role, _ in roles))
    if endpoint.serve.chat_template is not None:
        words += ["--chat-template", str(endpoint.serve.chat_template)]
    words += endpoint.serve.arguments
    return ServeCommand(name, models[0], endpoint.base_url, tuple(words), endpoint.api_key_env)


def _start(executable: str, model: str) -> list[str]:
    words = shlex.split(executable)
    return [*words, "serve", model] if len(words) == 1 else [*words, "--model", model]


def _parsers(model: str, endpoint: EndpointSettings, tools: bool) -> list[str]:
    known = next((family for family in FAMILIES if family[0] in model.casefold()), None)
    words: list[str] = []
    parser = endpoint.serve.tool_call_parser
    if tools or parser:
        parser = parser or (known[1] if known else TOOL_PARSER)
        words += ["--enable-auto-tool-choice", "--tool-call-parser", parser]
    reasoning = endpoint.serve.reasoning_parser
    if reasoning is None and known is not None:
        reasoning = known[2]
    return [*words, "--reasoning-parser", reasoning] if reasoning else words


@asynccontextmanager
async def running(
    commands: Sequence[ServeCommand], note: Callable[[str], None], *, wait_s: float
) -> AsyncGenerator[list[asyncio.subprocess.Process], None]:
    """Start all, wait until each is healthy, and stop all at the end, whatever happens.

    Raises:
        MissingExtraError: there is no such executable.
        ServerEnded: one of them ended, or was not healthy after `wait_s` seconds.
    """
    for command in commands:
        if shutil.which(command.words[0]) is None:
            raise MissingExtraError(f"'{command.words[0]} serve'", "vllm")
    processes: list[asyncio.subprocess.Process] = []
    try:
        for command in commands:
            note(f"starting {command.endpoint}: {command}")
            processes.append(await _started(command))
        pairs = list(zip(commands, processes, strict=True))
        await fan_out(
            pairs, lambda pair: _healthy(pair[0], pair[1], note, wait_s), workers=len(pairs)
        )
        yield processes
    finally:
        for process in processes:
            await _stopped(process)


async def first_to_end(
    commands: Sequence[ServeCommand], processes: Sequence[asyncio.subprocess.Process]
) -> ServerEnded:
    """Wait until one of the servers ends by itself."""
    waits = [asyncio.create_task(process.wait()) for process in processes]
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    at = waits.index(next(iter(done)))
    return _ended(commands[at], waits[at].result())


async def _started(command: ServeCommand) -> asyncio.subprocess.Process:
    environment = dict(os.environ)
    key = environment.get(command.key_env or "", "")
    if key:
        environment["VLLM_API_KEY"] = key
    # A session of its own: Ctrl-C reaches us alone, and we stop the server with its workers.
    # Its output goes to our stderr: stdout is for the endpoints, once they are ready.
    return await asyncio.create_subprocess_exec(
        *command.words,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=STDERR,
        start_new_session=True,
    )


async def _healthy(
    command: ServeCommand,
    process: asyncio.subprocess.Process,
    note: Callable[[str], None],
    wait_s: float,
) -> None:
    url = command.base_url.rstrip("/").removesuffix("/v1") + "/health"
    try:
        async with asyncio.timeout(wait_s), aiohttp.ClientSession() as session:
            while not await _answers(session, url):
                if process.returncode is not None:
                    raise _ended(command, process.returncode)
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise ServerEnded(
            f"The server of endpoint {command.endpoint} did not become healthy in {wait_s:g} s: "
            "look at its output above, or wait longer with --wait."
        ) from None
    note(f"ready: {command.endpoint} at {command.base_url} ({command.model})")


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url, timeout=aiohttp.ClientTimeout(total=5)) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


def _ended(command: ServeCommand, code: int) -> ServerEnded:
    return ServerEnded(
        f"The server of endpoint {command.endpoint} ended with exit code {code}: look at its "
        "output above."
    )


async def _stopped(process: asyncio.subprocess.Process) -> None:
    """End a server with all it started."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            break
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        try:
            async with asyncio.timeout(PATIENCE_S):
                await process.wait()
        except TimeoutError:
            continue
