"""Dialogues of our own, a profile with room for turns, and models that repeat what they read."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hmars import Memory
from hmars.settings import PartitionSettings
from tests.pipeline.support_server import profile_for, stage
from tests.scripted_server import Reply, ScriptedServer, Seen

BEGIN = datetime(2024, 1, 1, 8, tzinfo=UTC)
Turn = dict[str, Any]


def harbour(count: int, first: int = 1) -> list[Turn]:
    """Turns that each name their number, an hour apart."""
    return [
        {
            "id": f"h{number}",
            "speaker": "Ana" if number % 2 else "Nova",
            "role": "user" if number % 2 else "assistant",
            "text": f"Remark {number:04d}: lamp {number * 7 % 131} on pier {number % 23} was seen "
            f"to, and crate {number * 13 % 997} went to the ferry with letter {number}.",
            "time": (BEGIN + timedelta(hours=number)).isoformat(),
        }
        for number in range(first, first + count)
    ]


def remarks(seen: Seen) -> list[int]:
    """Numbers of the remarks in a prompt, in order, each once."""
    found = re.findall(r"Remark (\d{4}):", seen.text)
    return list(dict.fromkeys(map(int, found)))


def echo(seen: Seen) -> Reply | None:
    """`_echo` without usage: the two sides count texts full of numbers differently."""
    said = _echo(seen)
    return None if said is None else Reply(said, usage="none")


def _echo(seen: Seen) -> str | None:
    """A card, memory, selection or answer that repeats what it was made from."""
    said = seen.text.rsplit("</page", 1)[0].rsplit("</card", 1)[0].rsplit("\n\n\n", 1)[0]
    kept = " ".join(re.findall(r"[A-Z][^.\n]*\.", said))[-1200:] or "Nothing."
    name = stage(seen)
    if name == "card":
        card: dict[str, Any] = {"summary": kept, "topics": [], "entities": [], "page_index": []}
        return json.dumps(card)
    if name == "region":
        return json.dumps({"summary": kept, "submap": [], "crossrefs": []})
    if name == "select":
        numbers = dict.fromkeys(re.findall(r"<page (\d+) ", seen.text))
        return json.dumps({"pages": [{"page": int(n), "confidence": 0.9} for n in numbers]})
    if name == "answer":
        quote = re.findall(r"\n([A-Z][^\n]{10,})\n", seen.text.rsplit("</evidence", 1)[0])[-1]
        return json.dumps(
            {
                "answerable": True,
                "answer": f"{quote} [1]",
                "citations": [{"evidence": 1, "quote": quote}],
            }
        )
    return None


@asynccontextmanager
async def dialogue_memory(
    folder: Path,
    server: ScriptedServer,
    *,
    page: int = 120,
    region: int = 480,
    group: int = 4,
    namespace: str = "default",
) -> AsyncGenerator[Memory]:
    sizes = PartitionSettings(page_tokens=page, region_tokens=region, group_regions=group)
    profile = profile_for(folder, server.base_url).model_copy(update={"partition": sizes})
    async with Memory.open(
        folder / "memory.sqlite", profile=profile, namespace=namespace
    ) as memory:
        yield memory


def asked(server: ScriptedServer, name: str, since: int = 0) -> list[Seen]:
    return [seen for seen in server.requests[since:] if stage(seen) == name]


def traces(folder: Path, secret: str) -> list[str]:
    """Names of the files of the store that hold these bytes."""
    return [
        path.name for path in folder.glob("memory.sqlite*") if secret.encode() in path.read_bytes()
    ]


async def text_of(memory: Memory, document: str) -> str:
    return "".join(page.text for page in (await memory.hierarchy(document)).pages)


def write_turns(path: Path, turns: Sequence[Turn]) -> Path:
    path.write_text("\n".join(map(json.dumps, turns)), encoding="utf-8")
    return path
