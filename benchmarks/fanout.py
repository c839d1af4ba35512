"""How much the fan-out costs beside the model: wall time against the critical path, calls a second.

    python -m benchmarks.fanout                     # both tables, up to 1,000 calls
    python -m benchmarks.fanout --calls 10 100 1000 10000

A server in a process of its own answers every chat completion after a fixed latency (0.5 s), or at
once. The critical path of N calls with F in flight is ceil(N / F) * latency. Each way of calling is
measured in turn against the same server; every number is from one run of this command. The time of
the processor for a call is the number to trust on a machine that is busy with other things.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import multiprocessing
import platform
import resource
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from multiprocessing.connection import Connection
from typing import Any

import aiohttp
import openai
from aiohttp import web

from hmars.fanout import fan_out
from hmars.llm.contract import ChatRequest, Message, PromptRef
from hmars.llm.openai_wire import openai_transport
from hmars.llm.stack import ModelStack
from hmars.settings import Profile

PROMPT_CHARACTERS = 16 * 1024
REPLY = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": '{"pages": [3, 7]}'},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 4000, "completion_tokens": 8, "total_tokens": 4008},
    }
).encode()

Call = Callable[[int], Awaitable[object]]


def serve(latency_s: float, channel: Connection) -> None:
    """Run the server until the process is ended."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        if latency_s:
            await asyncio.sleep(latency_s)
        return web.Response(body=REPLY, content_type="application/json")

    async def run() -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
        channel.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


def text(number: int) -> str:
    return f"{number:08d} " + "x" * (PROMPT_CHARACTERS - 9)


async def hmars_call(url: str, flight: int, stack: AsyncExitStack, thin: bool) -> Call:
    """The whole stack of a role, as queries use it; `thin` puts it straight on aiohttp."""
    profile = Profile.model_validate(
        {
            "endpoints": {"bench": {"base_url": url, "in_flight": flight}},
            "roles": {"select": {"endpoint": "bench", "model": "m"}},
        }
    )
    transport = None if thin else openai_transport
    models = await stack.enter_async_context(ModelStack(profile, transport=transport))
    model = models.model("select")
    prompt = PromptRef("bench", 1, "")

    async def call(number: int) -> object:
        return await model.complete(
            ChatRequest("select", (Message("user", text(number)),), prompt, affinity="k")
        )

    return call


async def openai_call(url: str, flight: int, stack: AsyncExitStack, thin: bool) -> Call:
    """The `openai` client alone: as installed, or on its aiohttp transport."""
    client = await stack.enter_async_context(
        openai.AsyncOpenAI(
            base_url=url,
            api_key="none",
            max_retries=0,
            http_client=openai.DefaultAioHttpClient() if thin else None,
        )
    )

    async def call(number: int) -> object:
        return await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": text(number)}], max_tokens=1024
        )

    return call


async def aiohttp_call(url: str, flight: int, stack: AsyncExitStack, thin: bool) -> Call:
    """Nothing but a POST: the floor."""
    session = await stack.enter_async_context(
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=flight))
    )

    async def call(number: int) -> object:
        body = {"model": "m", "messages": [{"role": "user", "content": text(number)}]}
        async with session.post(f"{url}/chat/completions", json=body) as response:
            return await response.json()

    return call


Maker = Callable[[str, int, AsyncExitStack, bool], Awaitable[Call]]
WAYS: dict[str, tuple[Maker, bool, bool]] = {
    "hmars (aiohttp)": (hmars_call, True, False),
    "hmars (openai client)": (hmars_call, False, False),
    "raw aiohttp": (aiohttp_call, True, False),
    "openai on aiohttp, gather": (openai_call, True, True),
    "openai as installed, gather": (openai_call, False, True),
}


async def measure(way: str, url: str, calls: int, flight: int) -> dict[str, Any]:
    """Seconds of wall time for `calls` calls, and the peak memory of this process so far."""
    maker, thin, gather = WAYS[way]
    async with AsyncExitStack() as stack:
        call = await maker(url, flight, stack, thin)
        await call(0)  # connections, imports and caches of the client are not the fan-out
        start, busy = time.perf_counter(), time.process_time()
        if gather:
            # What people write: everything at once, held back by nothing but a semaphore.
            gate = asyncio.Semaphore(flight)

            async def one(number: int) -> object:
                async with gate:
                    return await call(number)

            await asyncio.gather(*(one(number) for number in range(calls)))
        else:
            await fan_out(range(calls), call, workers=flight)
        wall, busy = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "way": way,
        "calls": calls,
        "wall_s": wall,
        "per_s": calls / wall,
        "cpu_ms": 1000 * busy / calls,
        "peak_mb": peak,
    }


def in_process(way: str, url: str, calls: int, flight: int) -> dict[str, Any]:
    """Each measurement in a fresh process, so that peaks of memory are its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(theirs, way, url, calls, flight))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        raise SystemExit(f"the measurement of '{way}' ended without a result") from None
    finally:
        process.join()


def _run(channel: Connection, way: str, url: str, calls: int, flight: int) -> None:
    try:
        channel.send(asyncio.run(measure(way, url, calls, flight)))
    except openai.OpenAIError as error:
        # A way of calling that breaks down under the load is a result, too.
        failed = {"way": way, "calls": calls, "failed": type(error).__name__}
        channel.send(failed)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--latency", type=float, default=0.5, help="seconds")
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--instant-calls", type=int, default=1000)
    parser.add_argument("--instant-in-flight", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    rows: list[dict[str, Any]] = []
    for latency in (options.latency, 0.0):
        ours, theirs = context.Pipe()
        server = context.Process(target=serve, args=(latency, theirs), daemon=True)
        server.start()
        url = f"http://127.0.0.1:{ours.recv()}/v1"
        flight = options.in_flight if latency else options.instant_in_flight
        for calls in options.calls if latency else [options.instant_calls]:
            for way in WAYS:
                row = in_process(way, url, calls, flight)
                rows.append({**row, "latency_s": latency, "in_flight": flight})
                if not options.json:
                    print(line(rows[-1]), flush=True)
        server.terminate()  # it serves until then
        server.join()
    if options.json:
        about = {"python": platform.python_version(), "openai": openai.__version__}
        print(json.dumps({"about": about, "rows": rows}, indent=1))


def line(row: dict[str, Any]) -> str:
    name = f"{row['way']:28s} {row['calls']:6d} calls"
    if "failed" in row:
        return f"{name}  failed: {row['failed']}"
    memory = f"{row['cpu_ms']:6.2f} ms of processor a call  {row['peak_mb']:6.0f} MB"
    if not row["latency_s"]:
        return f"{name}  instant server: {row['per_s']:7.0f} calls/s  {memory}"
    path = math.ceil(row["calls"] / row["in_flight"]) * row["latency_s"]
    return f"{name}  {row['wall_s']:7.2f} s = {row['wall_s'] / path:5.2f} x critical path  {memory}"


if __name__ == "__main__":
    main()
