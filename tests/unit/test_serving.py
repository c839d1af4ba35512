"""`hmars serve-models`: the commands, and the life of the servers, with a stand-in for vLLM."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hmars.errors import ConfigError, MissingExtraError
from hmars.llm.serving import ServerEnded, running, serve_commands
from hmars.settings import Profile, load_profile

STAND_IN = """#!{python}
import http.server, pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored when tests run in the background
print("a banner")
place = pathlib.Path(__file__).parent
port = int(sys.argv[sys.argv.index("--port") + 1])
if "--break" in sys.argv:
    sys.exit(7)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
try:
    server.serve_forever()
except KeyboardInterrupt:
    (place / f"stopped-{{port}}").write_text("by SIGINT")
"""


def stand_in(folder: Path) -> str:
    path = folder / "vllm"
    path.write_text(STAND_IN.format(python=sys.executable), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def local_profile(*ports: int, arguments: tuple[str, ...] = ()) -> Profile:
    endpoints = {
        f"e{n}": {"base_url": f"http://127.0.0.1:{port}/v1", "serve": {"arguments": arguments}}
        for n, port in enumerate(ports)
    }
    roles = {
        role: {"endpoint": f"e{n % len(ports)}", "model": f"model-{n % len(ports)}"}
        for n, role in enumerate(("card", "region", "broadcast", "select", "answer"))
    }
    return Profile.model_validate({"endpoints": endpoints, "roles": roles})


def closed(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0


def test_the_vllm_profile_is_served_by_one_command_for_each_model() -> None:
    commands = serve_commands(load_profile("vllm"))
    assert [command.words[:3] for command in commands] == [
        ("vllm", "serve", "Qwen/Qwen3-0.6B"),
        ("vllm", "serve", "Qwen/Qwen3-8B"),
    ]
    for command in commands:
        assert "--enable-prefix-caching" in command.words
        assert "--enable-prompt-tokens-details" in command.words
        assert "--max-model-len 32768" in str(command)
        assert "--reasoning-parser qwen3" in str(command)


def test_a_lead_gets_tools_its_parsers_and_its_template() -> None:
    profile = Profile.model_validate(
        {
            "endpoints": {
                "lead": {
                    "base_url": "http://localhost:8003/v1",
                    "serve": {"chat_template": "lead.jinja", "tool_call_parser": "qwen3_xml"},
                }
            },
            "roles": {"lead": {"endpoint": "lead", "model": "inNexus/parser-qwen35-4b"}},
        }
    )
    (command,) = serve_commands(profile, "python -m vllm.entrypoints.openai.api_server")
    text = str(command)
    assert text.startswith("python -m vllm.entrypoints.openai.api_server --model inNexus/")
    assert "--enable-auto-tool-choice --tool-call-parser qwen3_xml" in text
    assert "--chat-template lead.jinja" in text


def test_two_models_at_one_address_are_refused() -> None:
    profile = Profile.model_validate(
        {
            "endpoints": {"e": {"base_url": "http://127.0.0.1:8001/v1"}},
            "roles": {
                "card": {"endpoint": "e", "model": "a"},
                "select": {"endpoint": "e", "model": "b"},
            },
        }
    )
    with pytest.raises(ConfigError, match="an endpoint of its own"):
        serve_commands(profile)


def test_a_profile_without_local_servers_has_nothing_to_serve() -> None:
    with pytest.raises(ConfigError, match="no endpoint on this machine"):
        serve_commands(load_profile("openai"))


def test_a_key_is_named_and_never_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_KEY", "very-secret-0123")
    profile = Profile.model_validate(
        {
            "endpoints": {"e": {"base_url": "http://127.0.0.1:1/v1", "api_key_env": "LOCAL_KEY"}},
            "roles": {"card": {"endpoint": "e", "model": "m"}},
        }
    )
    (command,) = serve_commands(profile)
    assert command.key_env == "LOCAL_KEY"
    assert "very-secret" not in repr(command)


async def test_servers_are_waited_for_and_all_are_stopped(tmp_path: Path) -> None:
    ports = (free_port(), free_port())
    commands = serve_commands(local_profile(*ports), stand_in(tmp_path))
    notes: list[str] = []
    async with running(commands, notes.append, wait_s=60) as processes:
        assert len(processes) == 2
        assert not any(closed(port) for port in ports)
    assert sum(note.startswith("ready") for note in notes) == 2
    assert all(closed(port) for port in ports)
    assert all((tmp_path / f"stopped-{port}").is_file() for port in ports)


async def test_one_that_ends_at_once_stops_the_others_and_says_so(tmp_path: Path) -> None:
    ports = (free_port(), free_port())
    good, _ = serve_commands(local_profile(*ports), stand_in(tmp_path))
    _, bad = serve_commands(local_profile(*ports, arguments=("--break",)), stand_in(tmp_path))
    with pytest.raises(ServerEnded, match=r"e1 ended with exit code 7"):
        async with running([good, bad], lambda _: None, wait_s=60):
            raise AssertionError("it never becomes healthy")
    assert closed(ports[0])


async def test_without_vllm_the_extra_is_named(tmp_path: Path) -> None:
    commands = serve_commands(local_profile(free_port()), str(tmp_path / "nothing"))
    with pytest.raises(MissingExtraError, match=r"hmars\[vllm\]"):
        async with running(commands, lambda _: None, wait_s=1):
            raise AssertionError("there is nothing to start")


async def test_ctrl_c_stops_the_command_line_and_its_servers(tmp_path: Path) -> None:
    port = free_port()
    profile = tmp_path / "local.toml"
    roles = "".join(
        f'[roles.{role}]\nendpoint = "e"\nmodel = "m"\n'
        for role in ("card", "region", "broadcast", "select", "answer")
    )
    profile.write_text(
        f'agents = "model"\n[endpoints.e]\nbase_url = "http://127.0.0.1:{port}/v1"\n{roles}',
        encoding="utf-8",
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hmars.cli.main", "serve-models",
        "--profile", str(profile), "--executable", stand_in(tmp_path),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ),
    )  # fmt: skip
    assert process.stdout is not None
    async with asyncio.timeout(120):
        line = await process.stdout.readline()
        assert line.decode().split("\t")[:2] == ["e", f"http://127.0.0.1:{port}/v1"]
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    assert closed(port)
