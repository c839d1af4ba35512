"""Thirty everyday matters for the dialogue generator: what is talked about, and with what words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    thing: str
    """What is looked for, planned or repaired."""
    options: tuple[str, str, str]
    """Three things one may settle on."""
    person: str
    """Who else is concerned."""
    limit: str
    """What a number limits."""
    unit: str
    wish: str
    """A preference, said in passing."""
    bar: str
    """A constraint that rules something out."""
    ruled_out: str
    """What the constraint rules out, in other words than its own."""
    chat: tuple[str, str, str]
    """Small talk of the matter."""


def _made(line: str) -> Scenario:
    parts = [part.strip() for part in line.split("|")]
    name, thing, options, person, limit, unit, wish, bar, out, chat = parts
    first, second, third = options.split(",")
    one, two, three = chat.split(";")
    return Scenario(
        name,
        thing,
        (first.strip(), second.strip(), third.strip()),
        person,
        limit,
        unit,
        wish,
        bar,
        out,
        (one.strip(), two.strip(), three.strip()),
    )


def scenarios() -> tuple[Scenario, ...]:
    """All of them, in the order of scenarios.txt."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    return tuple(_made(line) for line in text.splitlines() if line and not line.startswith("#"))
