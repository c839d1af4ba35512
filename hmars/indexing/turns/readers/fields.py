"""Typed access to JSON of unknown shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

Json = Mapping[str, Any]


def as_map(value: object) -> Json | None:
    """The object, or None if the value is anything else."""
    return cast(Json, value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any]:
    """The items of a JSON array; nothing for any other value."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def maps(value: object) -> list[Json]:
    """The objects of a JSON array."""
    return [item for item in map(as_map, as_list(value)) if item is not None]


def text_of(value: object) -> str:
    """A string as it is; nothing for any other value."""
    return value if isinstance(value, str) else ""


def id_of(value: object) -> str | None:
    """An id given as a string or a number."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None


def first_key(record: Json, keys: Iterable[str]) -> object:
    """The value of the first key that is there and not null."""
    return next((record[key] for key in keys if record.get(key) is not None), None)


def join(*lines: str) -> str:
    """Lines that hold something, one under the other."""
    return "\n".join(line for line in lines if line)
