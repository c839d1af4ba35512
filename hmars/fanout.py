"""The one way to do many things at once: ordered results, bounded work, nothing left running."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sized
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

    Items are taken one by one as workers become free, so a generator of any length costs no more
    memory than its results. The first exception (of `work` or of `items`) cancels what is running
    and is raised as itself, not as a group; nothing is left running, also after a cancellation.
    """
    waiting = enumerate(items)
    results: dict[int, Result] = {}
    failures: list[BaseException] = []

    async def drain() -> None:
        # Without an await between "next item" and "take it", workers never see the same item.
        try:
            for position, item in waiting:
                results[position] = await work(item)
                if failures:
                    return
        except BaseException as error:
            failures.append(error)
            raise

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_workers(items, workers)):
                tasks.create_task(drain())
    except BaseExceptionGroup:
        if not failures:
            raise
    if failures:
        # Also where `work` ended in a CancelledError of its own, which a TaskGroup passes over.
        raise failures[0]
    return [results[position] for position in sorted(results)]


def _workers(items: Iterable[object], workers: int) -> int:
    """No more tasks than there are items, where their number is known."""
    wanted = max(1, workers)
    return min(wanted, len(items)) if isinstance(items, Sized) else wanted
