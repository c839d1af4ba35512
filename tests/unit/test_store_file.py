"""The store file: made whole, recognised, refused untouched."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, Pool
from store_samples import put_cards, save

from hmars.errors import StoreError
from hmars.store import Store
from hmars.store.schema import SCHEMA_VERSION

BOOK = (("One tide came. ",), ("Two ships left. ",))
NOBODY = 65534


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def filled(folder: Path, pages: int = 2) -> Path:
    path = folder / "memory.hmars"
    with Store.open(path) as store:
        put_cards(store, save(store, [[f"Page {n} of the tide. " * 40] for n in range(pages)]))
    return path


def test_a_store_is_made_with_its_folder_and_leaves_one_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er ?#%" / "memory.hmars"
    Store.open(path).close()
    filled(path.parent)
    assert sorted(contents(path.parent)) == ["memory.hmars"]


def test_a_store_is_opened_by_url(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with Store.open(f"sqlite:///{path}") as store:
        assert len(store.documents("default")) == 1
        assert store.location == str(path)


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(filled(tmp_path))) as raw:
        values = [
            raw.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version", "journal_mode", "quick_check")
        ]
    assert values == [int.from_bytes(b"HMAR", "big"), SCHEMA_VERSION, "wal", "ok"]


def test_connections_keep_foreign_keys_and_secure_delete(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        for name, expected in (("foreign_keys", 1), ("secure_delete", 1), ("synchronous", 2)):
            sql = f"PRAGMA {name}"
            assert store.write(lambda c, sql=sql: c.exec_driver_sql(sql).scalar()) == expected


def test_nothing_is_made_where_only_reading_is_wanted(tmp_path: Path) -> None:
    for read_only in (False, True):
        with pytest.raises(StoreError, match="no store at"):
            Store.open(tmp_path / "absent", create=False, read_only=read_only)
    assert contents(tmp_path) == {}


def make_empty(path: Path) -> None:
    path.write_bytes(b"")


def make_text(path: Path) -> None:
    path.write_text("Dear diary, " * 100)


def make_foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE bookmarks (url)")


def make_newer(path: Path) -> None:
    filled(path.parent)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 99")


def make_half(path: Path) -> None:
    os.truncate(filled(path.parent, pages=50), path.stat().st_size // 2)


def make_short(path: Path) -> None:
    os.truncate(filled(path.parent), 60)


def make_scribbled(path: Path) -> None:
    filled(path.parent)
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 4000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (make_empty, "has 0 bytes"),
        (make_text, "not a store of hmars"),
        (make_foreign, "another program"),
        (make_newer, "newer hmars"),
        (make_half, "damaged or cut off"),
        (make_short, "has 60 bytes"),
        (make_scribbled, "damaged or cut off"),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_whole_store_is_refused_and_left_as_it_was(
    tmp_path: Path, make: Callable[[Path], None], message: str, read_only: bool
) -> None:
    path = tmp_path / "memory.hmars"
    make(path)
    before = contents(tmp_path)
    with pytest.raises(StoreError, match=message) as raised:
        Store.open(path, read_only=read_only)
    assert str(path) in str(raised.value)
    assert contents(tmp_path) == before


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        Store.open(tmp_path)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("keep", [0.5, 0.0])
def test_any_file_of_a_killed_store_cut_off_is_either_recovered_or_refused(
    tmp_path: Path, suffix: str, keep: float
) -> None:
    live, dead = tmp_path / "live", tmp_path / "dead"
    path = filled(live, pages=50)
    with Store.open(path) as store:
        save(store, BOOK, source="/second")
        shutil.copytree(live, dead)  # as a kill would leave it, with its log beside it
    victim = dead / (path.name + suffix)
    os.truncate(victim, int(victim.stat().st_size * keep))
    before = (dead / path.name).read_bytes()
    if suffix:
        with Store.open(dead / path.name) as store:
            document = store.document("default", "/books/harbour.txt")
            assert len(store.load_index("default", document.id).cards) == 50
    else:
        with pytest.raises(StoreError, match=r"has 0 bytes|damaged or cut off"):
            Store.open(dead / path.name)
        assert (dead / path.name).read_bytes() == before


def test_a_vanished_file_is_an_error_and_not_an_empty_store(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with Store.open(path) as store:
        path.unlink()
        with pytest.raises(StoreError, match="cannot be opened"):
            save(store, BOOK)
    assert not path.exists()


def test_two_who_make_the_same_store_at_once_share_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.hmars"
    link = os.link

    def second_comes_first(new: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        with Store.open(path) as second:
            save(second, BOOK)
        link(new, target)

    monkeypatch.setattr(os, "link", second_comes_first)
    with Store.open(path) as first:
        assert len(first.documents("default")) == 1
    assert sorted(contents(tmp_path)) == ["memory.hmars"]


# ---------------------------------------------------------------- full, locked, read-only


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    path = filled(tmp_path)

    def limit(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA page_count")
        cursor.execute(f"PRAGMA max_page_count = {cursor.fetchall()[0][0] + 1}")
        cursor.close()

    event.listen(Pool, "connect", limit)
    try:
        with Store.open(path) as store:
            before = store.documents("default")
            with pytest.raises(StoreError, match="disk is full"):
                save(store, [["Too much of a good thing. " * 9000]], source="/big")
            assert store.documents("default") == before
    finally:
        event.remove(Pool, "connect", limit)
    with Store.open(path) as store:
        assert len(save(store, [["Now it fits. " * 9000]], source="/big").id) > 6


def test_a_locked_store_is_said_and_still_read(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with Store.open(path, busy_timeout_s=0.01) as store:
            with pytest.raises(StoreError, match="locked by another process"):
                save(store, BOOK, source="/second")
            assert len(store.documents("default")) == 1
            other.execute("ROLLBACK")
            save(store, BOOK, source="/second")
            assert len(store.documents("default")) == 2


def test_a_store_opened_for_reading_is_never_written(tmp_path: Path) -> None:
    path = filled(tmp_path)
    before = contents(tmp_path)
    with Store.open(path, read_only=True) as store:
        document = store.documents("default")[0]
        with pytest.raises(StoreError, match="is read-only"):
            save(store, BOOK)
        with pytest.raises(StoreError, match="is read-only"):
            store.forget("default", document.id)
        assert store.load_index("default", document.id).document == document
    assert contents(tmp_path) == before


@contextmanager
def without_root() -> Generator[None]:
    """Permissions do not hold root back."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.name == "nt", reason="permissions of folders mean something else there")
@pytest.mark.parametrize("which", ["file", "folder"])
def test_without_permission_to_write_it_still_reads(which: str) -> None:
    folder = Path(tempfile.mkdtemp())  # the fixture's folder is closed to other users
    path = filled(folder)
    try:
        path.chmod(0o444 if which == "file" else 0o666)
        folder.chmod(0o555 if which == "folder" else 0o777)
        with without_root():
            with Store.open(path) as store:
                assert store.read_only
                document = store.documents("default")[0]
                assert len(store.load_index("default", document.id).cards) == 2
                with pytest.raises(StoreError, match="make the file and its folder writable"):
                    save(store, BOOK)
            with pytest.raises(StoreError, match="cannot be made"):
                Store.open("/proc/none/memory.hmars")
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
