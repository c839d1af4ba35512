"""`hmars usage`: what models have cost in a namespace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from hmars.cli.options import AsJson, Namespace, Overrides, ProfileName, Store, open_memory
from hmars.cli.output import write
from hmars.cli.render import plural
from hmars.llm.budget import cost_of
from hmars.settings import Profile
from hmars.store import UsageRow


def command(
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="Only from this day on, e.g. 2026-01-31.")
    ] = None,
    store: Store = None,
    namespace: Namespace = None,
    profile: ProfileName = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Show calls, tokens and time by day, role and model; money where the profile names prices."""

    async def run() -> tuple[list[UsageRow], Profile]:
        memory = open_memory(store, namespace, profile, overrides, quiet=True, create=False)
        async with memory:
            return await memory.usage_history(since), memory.profile

    rows, used = asyncio.run(run())
    if as_json:
        for row in rows:
            entry = {**asdict(row), "usage": row.usage.model_dump(), "cost": _cost(row, used)}
            write(json.dumps(entry, ensure_ascii=False))
    else:
        write(usage_text(rows, used))


def usage_text(rows: Sequence[UsageRow], profile: Profile) -> str:
    """A line for each day, role and model."""
    if not rows:
        return "No model has been called in this namespace."
    lines: list[str] = []
    for row in rows:
        usage = row.usage
        share = usage.cached_tokens / usage.prompt_tokens if usage.prompt_tokens else 0.0
        cost = _cost(row, profile)
        parts = [
            f"{row.day}  {row.role:<10} {row.model}: {plural(usage.calls, 'call')}",
            f"{usage.prompt_tokens:,} tokens in ({share:.0%} cached)",
            f"{usage.completion_tokens:,} out",
            f"{row.seconds:,.1f} s",
        ]
        if row.failed:
            parts.append(f"{row.failed} failed")
        parts += [f"{count} {path}" for path, count in usage.paths.items()]
        if cost is not None:
            parts.append(f"cost {cost:.4f}")
        lines.append(", ".join(parts))
    return "\n".join(lines)


def _cost(row: UsageRow, profile: Profile) -> float | None:
    """By the price of today's profile, where the role still has the same model."""
    for role, settings in profile.roles.items():
        if role == row.role and settings.model == row.model and settings.price is not None:
            return round(cost_of(row.usage, settings.price), 6)
    return None
