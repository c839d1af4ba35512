"""Many things at once: ordered, bounded, and nothing left running."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmars.fanout import fan_out


def still_running() -> set[asyncio.Task[object]]:
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 8))
def test_results_have_the_order_of_the_items_however_long_each_takes(
    turns: list[int], workers: int
) -> None:
    under_way = peak = 0

    async def work(item: tuple[int, int]) -> int:
        nonlocal under_way, peak
        under_way += 1
        peak = max(peak, under_way)
        for _ in range(item[1]):
            await asyncio.sleep(0)
        under_way -= 1
        return item[0]

    results = asyncio.run(fan_out(list(enumerate(turns)), work, workers=workers))
    assert results == list(range(len(turns)))
    assert peak <= workers


async def test_as_many_work_together_as_there_are_workers() -> None:
    meeting = asyncio.Barrier(5)

    async def work(item: int) -> int:
        await meeting.wait()
        return item

    async with asyncio.timeout(5):
        assert await fan_out(range(10), work, workers=5) == list(range(10))


async def test_the_first_failure_is_raised_as_itself_and_ends_the_others() -> None:
    ended: list[int] = []

    async def work(item: int) -> None:
        if item == 3:
            raise ValueError("lamp three") from KeyError("cause")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(item)

    with pytest.raises(ValueError, match="lamp three") as failed:
        await fan_out(range(100), work, workers=4)
    assert isinstance(failed.value.__cause__, KeyError)
    assert sorted(ended) == [0, 1, 2]
    assert not still_running()


async def test_no_item_is_started_after_a_failure() -> None:
    started: list[int] = []

    async def work(item: int) -> None:
        started.append(item)
        await asyncio.sleep(0)
        if item == 0:
            raise ValueError

    with pytest.raises(ValueError):
        await fan_out(range(100), work, workers=2)
    assert len(started) <= 4


async def test_a_cancellation_leaves_nothing_running() -> None:
    started = asyncio.Event()

    async def work(item: int) -> None:
        if item == 3:
            started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(fan_out(range(10), work, workers=4))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not still_running()


async def test_work_that_ends_in_a_cancellation_of_its_own_is_not_passed_over() -> None:
    async def work(item: int) -> int:
        if item == 1:
            raise asyncio.CancelledError
        return item

    with pytest.raises(asyncio.CancelledError):
        await fan_out(range(3), work, workers=2)


async def test_a_failure_of_the_items_themselves_is_raised() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no more lamps")

    async def work(item: int) -> int:
        await asyncio.sleep(0)
        return item

    with pytest.raises(ValueError, match="no more lamps"):
        await fan_out(items(), work, workers=3)


async def test_ten_thousand_items_are_never_in_memory_at_once() -> None:
    class Item:
        """An object that can be watched."""

    alive = peak = 0

    def gone() -> None:
        nonlocal alive
        alive -= 1

    def items() -> Iterator[Item]:
        nonlocal alive, peak
        for _ in range(10_000):
            item = Item()
            weakref.finalize(item, gone)
            alive += 1
            peak = max(peak, alive)
            yield item

    async def work(item: Item) -> int:
        await asyncio.sleep(0)
        return 1

    gc.disable()
    try:
        results = await fan_out(items(), work, workers=64)
    finally:
        gc.enable()
    assert sum(results) == 10_000
    assert peak <= 2 * 64 + 2


async def test_no_items_give_no_results() -> None:
    async def work(item: int) -> int:
        return item

    assert await fan_out([], work, workers=4) == []
    assert await fan_out(iter(()), work, workers=4) == []
