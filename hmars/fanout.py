"""The one way to do many things at once: ordered results, bounded work, nothing left running."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def fan_out(
    items: Iterable[Item],
    work: Callable[[Item], Awaitable[Result]],
    *,
    workers: int,
) -> list[Result]:
    """Apply `work` to every item, at most `workers` at a time; results in the order of the items.

    The first exception cancels what is running and is raised as itself, not as a group.
    """
    waiting = enumerate(items)
    results: dict[int, Result] = {}

    async def drain() -> None:
        for position, item in waiting:
            results[position] = await work(item)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(max(1, workers)):
                tasks.create_task(drain())
    except BaseExceptionGroup as group:
        raise _first(group) from None
    return [results[position] for position in sorted(results)]


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group.exceptions[0]
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
