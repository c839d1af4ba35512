"""Time of a question against the number of windows, with a server of fixed latency."""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from aiohttp import web

from hmars.llm.stack import ModelStack
from hmars.model import Document, DocumentIndex, Group, Page, Region, Role
from hmars.prompts import PromptLibrary
from hmars.query.agents import Scope
from hmars.query.family import model_query_agents
from hmars.query.lead import LeadResult, ask_lead, lead_settings, model_lead_agents
from hmars.settings import Profile
from hmars.tokens import WordTokenizer

ROLES: tuple[Role, ...] = ("card", "region", "broadcast", "select", "answer", "lead", "read")
WINDOW_WORDS = 3_000
TURNS, ASKING = 3, 2


def serve(latency_s: float, channel: Connection) -> None:
    """Answer every call after `latency_s`: readers abstain, the lead asks twice and answers."""

    async def answer(request: web.Request) -> web.Response:
        body: dict[str, Any] = await request.json()
        await asyncio.sleep(latency_s)
        message: dict[str, Any] = {"role": "assistant", "content": '{"findings": []}'}
        if body.get("tools"):
            message = lead_turn(body["messages"])
        return web.json_response(
            {
                "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 5_000, "completion_tokens": 6},
            }
        )

    async def run() -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
        channel.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    _many_files()
    asyncio.run(run())


def lead_turn(messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    done = sum(message["role"] == "assistant" for message in messages)
    if done >= ASKING:
        return {"role": "assistant", "content": "<answer>Not in the document</answer>"}
    function = {"name": "query_agents", "arguments": json.dumps({"query": f"query {done}"})}
    call = {"id": f"call-{done}-x", "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _many_files() -> None:
    """A socket for each call under way."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def long_index(windows: int) -> DocumentIndex:
    """A document of `windows` pages of one window each, four to a region."""
    pages: list[Page] = []
    start = 0
    for number in range(1, windows + 1):
        text = f"Page {number}. " + "word " * (WINDOW_WORDS - 2) + "\n"
        pages.append(Page(number, start, start + len(text), WINDOW_WORDS, f"p. {number}", "", text))
        start += len(text)
    regions = tuple(
        Region("long", at // 4 + 1, tuple(pages[at : at + 4])) for at in range(0, windows, 4)
    )
    numbers = tuple(region.index for region in regions)
    document = Document(
        id="long",
        namespace="default",
        title="Long",
        source="long",
        kind="text",
        content_hash="0",
        characters=start,
        tokens=windows * WINDOW_WORDS,
        pages=windows,
        regions=len(regions),
        groups=1,
        tokenizer="words",
        updated="2026-01-01T00:00:00+00:00",
    )
    return DocumentIndex(document, regions, (Group(1, numbers),))


def latency_profile(port: int, permits: int) -> Profile:
    endpoint = {
        "base_url": f"http://127.0.0.1:{port}/v1",
        "in_flight": permits,
        "structured": "json_schema",
    }
    return Profile.model_validate(
        {
            "agents": "model",
            "endpoints": {"local": endpoint},
            "roles": {
                role: {"endpoint": "local", "model": "m", "max_tokens": 256} for role in ROLES
            },
            "lead": {"hints": False},
        }
    )


async def time_of(windows: int, port: int) -> tuple[float, LeadResult]:
    """Seconds of one question over a text of `windows` windows."""
    profile = latency_profile(port, permits=windows + 8)
    scope, tokenizer, prompts = Scope((long_index(windows),)), WordTokenizer(), PromptLibrary()
    async with ModelStack(profile) as stack:
        guide = model_query_agents(profile, stack.model, prompts, tokenizer, scope)
        agents = model_lead_agents("What?", profile, stack.model, prompts, tokenizer, scope, guide)
        settings = lead_settings(profile, workers=windows + 8)
        began = time.perf_counter()
        result = await ask_lead("What?", scope, agents, settings, tokenizer)
        return time.perf_counter() - began, result


def latency(arguments: argparse.Namespace) -> None:
    """Print wall time by number of windows, against the critical path and the shortest text."""
    _many_files()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(arguments.latency, theirs), daemon=True)
    server.start()
    try:
        port: int = ours.recv()
        critical = (TURNS + ASKING) * arguments.latency
        print(f"latency {arguments.latency:g} s, critical path {critical:g} s")
        print("windows  rounds   calls   wall s  /critical  cpu s here")
        walls: list[float] = []
        for windows in arguments.windows:
            spent = time.process_time()
            wall, result = asyncio.run(time_of(windows, port))
            spent = time.process_time() - spent
            walls.append(wall)
            rounds = result.answer.rounds
            calls = sum(item.readers for item in rounds) + len(rounds)
            print(
                f"{windows:>7} {len(rounds):>7} {calls:>7} {wall:>8.2f} {wall / critical:>10.2f} "
                f"{spent:>11.2f}"
            )
        growth = arguments.windows[-1] / arguments.windows[0]
        print(f"{growth:g} times the windows take {walls[-1] / walls[0]:.2f} times as long")
    finally:
        server.terminate()
        server.join()
