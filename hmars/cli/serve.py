"""`hmars serve-models`: start the local models of a profile, and stop them together."""

from __future__ import annotations

import asyncio
import signal
from typing import Annotated

import typer

from hmars.cli.options import Overrides, ProfileName
from hmars.cli.output import note, write
from hmars.llm.serving import ServeCommand, first_to_end, running, serve_commands
from hmars.settings import DEFAULT_PROFILE, Environment, load_profile


def command(
    profile: ProfileName = None,
    overrides: Overrides = None,
    executable: Annotated[
        str,
        typer.Option(
            help="What serves: `vllm`, or words that take --model, e.g. "
            "'python -m vllm.entrypoints.openai.api_server'."
        ),
    ] = "vllm",
    wait: Annotated[
        float, typer.Option(min=1, help="Seconds to wait until a server is healthy.")
    ] = 1800.0,
    show: Annotated[
        bool, typer.Option("--show", help="Print the commands and start nothing.")
    ] = False,
) -> None:
    """Start `vllm serve` for each local endpoint of a profile; Ctrl-C stops them all."""
    chosen = load_profile(profile or Environment().profile or DEFAULT_PROFILE, overrides or ())
    commands = serve_commands(chosen, executable)
    if show:
        for item in commands:
            write(str(item))
        return
    asyncio.run(_serve(commands, wait))


async def _serve(commands: list[ServeCommand], wait: float) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    serving = asyncio.ensure_future(_until(commands, wait, stop))
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, _interrupt, stop, serving)
    try:
        await serving
    except asyncio.CancelledError:
        note("hmars: stopped before all servers were ready.")
    finally:
        for sign in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(sign)


def _interrupt(stop: asyncio.Event, serving: asyncio.Future[None]) -> None:
    """Once all are ready, end in order; before that, break the waiting off."""
    if stop.is_set():
        return
    stop.set()
    serving.cancel()


async def _until(commands: list[ServeCommand], wait: float, stop: asyncio.Event) -> None:
    async with running(commands, lambda text: note(f"hmars: {text}"), wait_s=wait) as processes:
        for item in commands:
            write(f"{item.endpoint}\t{item.base_url}\t{item.model}")
        note("hmars: all servers are ready; Ctrl-C stops them.")
        try:
            raise await first_to_end(commands, processes)
        except asyncio.CancelledError:
            if not stop.is_set():
                raise
    note("hmars: all servers are stopped.")
