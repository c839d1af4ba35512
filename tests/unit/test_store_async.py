from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine
from store_samples import card_for, save

from hmars.errors import NotFoundError
from hmars.llm.contract import CallLog, ReplyCache
from hmars.model import CallRecord, Usage
from hmars.store import AsyncStore, Store, card_key

BOOK = [[f"Bell {number}. "] for number in range(60)]
GUARD_S = 30
RECORD = CallRecord(
    ts="2026-01-01T00:00:00+00:00",
    role="card",
    model="m",
    prompt="p@1",
    usage=Usage(calls=1),
    seconds=1.0,
    outcome="ok",
)


class Commits:
    """Counts transactions that wrote, and can hold the writing thread inside one."""

    def __init__(self) -> None:
        self.count = 0
        self.inside = threading.Event()
        self.go_on = threading.Event()

    def hold(self, connection: Connection) -> None:
        connection.exec_driver_sql("INSERT INTO meta VALUES ('held', 'yes')")
        self.inside.set()
        assert self.go_on.wait(GUARD_S)


async def start_holding(store: AsyncStore, commits: Commits) -> asyncio.Future[None]:
    """A write that stays inside its transaction, so that those behind it have to wait."""
    held = asyncio.ensure_future(store.run_write(commits.hold))
    assert await asyncio.to_thread(commits.inside.wait, GUARD_S)
    return held


async def test_the_loop_runs_on_while_a_write_is_slow_and_reads_go_past_it(tmp_path: Path) -> None:
    async with AsyncStore(Store.open(tmp_path / "s")) as store:
        save(store.store, BOOK)
        commits = Commits()
        held = await start_holding(store, commits)
        async with asyncio.timeout(GUARD_S):
            assert len(await store.documents("default")) == 1
        assert not held.done()
        commits.go_on.set()
        await held


async def test_writes_that_wait_together_share_one_transaction(tmp_path: Path) -> None:
    async with AsyncStore(Store.open(tmp_path / "s")) as store:
        document = save(store.store, BOOK)
        commits = Commits()
        held = await start_holding(store, commits)
        regions = (await store.load_index("default", document.id)).regions
        async with asyncio.TaskGroup() as tasks:
            for region in regions:
                key = card_key("a", region.key)
                tasks.create_task(
                    store.put_card("default", document.id, region, key, card_for(region))
                )
                tasks.create_task(
                    store.reply_cache("default").put_reply(key, region.text, (document.id,))
                )
            await asyncio.sleep(0)

            def count(_connection: Connection) -> None:
                commits.count += 1

            event.listen(Engine, "commit", count)
            commits.go_on.set()
        event.remove(Engine, "commit", count)
        await held
        assert commits.count <= 3
        assert (await store.document("default", document.id)).complete
        assert await store.get_reply("default", card_key("a", regions[9].key)) == "Bell 9. "


async def test_one_write_that_fails_does_not_take_the_others_along(tmp_path: Path) -> None:
    async with AsyncStore(Store.open(tmp_path / "s")) as store:
        document = save(store.store, BOOK)
        commits = Commits()
        held = await start_holding(store, commits)
        first, second = (await store.load_index("default", document.id)).regions[:2]
        puts = [
            asyncio.ensure_future(
                store.put_card("default", identity, region, "k" * 64, card_for(region))
            )
            for identity, region in ((document.id, first), ("absent", first), (document.id, second))
        ]
        await asyncio.sleep(0)
        commits.go_on.set()
        await held
        await asyncio.wait(puts)
        assert [type(put.exception()) for put in puts] == [type(None), NotFoundError, type(None)]
        assert (await store.document("default", document.id)).cards_missing == len(BOOK) - 2


async def test_a_cancelled_await_leaves_at_once_and_its_write_still_happens(tmp_path: Path) -> None:
    async with AsyncStore(Store.open(tmp_path / "s")) as store:
        commits = Commits()
        held = await start_holding(store, commits)
        put = asyncio.ensure_future(store.put_reply("default", "k", "paid for", []))
        await asyncio.sleep(0)
        put.cancel()
        with pytest.raises(asyncio.CancelledError):
            await put
        held.cancel()
        commits.go_on.set()
    with Store.open(tmp_path / "s") as store:
        assert store.get_reply("default", "k") == "paid for"


async def test_closing_waits_for_what_was_started(tmp_path: Path) -> None:
    store = AsyncStore(Store.open(tmp_path / "s"))
    puts = [asyncio.ensure_future(store.put_reply("default", str(n), "x", [])) for n in range(50)]
    await asyncio.sleep(0)
    await store.aclose()
    assert all([await put for put in puts])


async def test_the_cache_and_the_log_are_what_models_want(tmp_path: Path) -> None:
    async with AsyncStore(Store.open(tmp_path / "s")) as store:
        cache: ReplyCache = store.reply_cache("default")
        log: CallLog = store.call_log("default")
        await cache.put_reply("k", "{}", ())
        await log.log_call(RECORD)
        assert await cache.get_reply("k") == "{}"
        assert await store.reply_cache("other").get_reply("k") is None
        assert store.store.usage_history("default")[0].requests == 1
    async with AsyncStore(Store.open(tmp_path / "s", read_only=True)) as store:
        await store.reply_cache("default").put_reply("new", "{}", ())
        await store.call_log("default").log_call(RECORD)
        assert await store.get_reply("default", "k") == "{}"
        assert await store.get_reply("default", "new") is None


async def test_two_stores_on_one_file_in_two_loops_both_write_everything(tmp_path: Path) -> None:
    path = tmp_path / "s"
    both_open = threading.Barrier(2, timeout=GUARD_S)

    async def index(name: str) -> None:
        async with AsyncStore(Store.open(path)) as store:
            await asyncio.to_thread(both_open.wait)
            document = save(store.store, BOOK, source=f"/{name}")
            for region in (await store.load_index("default", document.id)).regions:
                key = card_key(name, region.key)
                await store.put_card("default", document.id, region, key, card_for(region))

    async with asyncio.TaskGroup() as tasks:
        for name in ("one", "two"):
            tasks.create_task(asyncio.to_thread(asyncio.run, index(name)))
    with Store.open(path) as store:
        assert [document.complete for document in store.documents("default")] == [True, True]
