"""The SQLite file: how it is born, recognised, opened and scrubbed.

A store file is built beside its name and linked into place when it is whole, so an empty or
half-written file is never ours and never taken for an empty store. What is refused is only read.
The file is never opened except through SQLite: closing any other handle on it would drop the
locks of this process.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from hmars.errors import StoreError
from hmars.store.schema import SCHEMA_VERSION, meta, metadata

APPLICATION_ID = int.from_bytes(b"HMAR", "big")
PAGE_SIZE = 8192
"""A text page of 1,024 tokens mostly fits one database page, without an overflow chain."""
SHORTEST_FILE = 512
SMALL_FILE_PAGES = 4096
WAL_FRAME_HEADER = 24
SETTINGS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",  # no text of documents in temporary files
)
DURABLE = (
    "PRAGMA synchronous = FULL",  # a reply that was paid for survives a power cut
    f"PRAGMA journal_size_limit = {64 * 1024 * 1024}",
)
WRITE_OPTION = "hmars_write"
_SCHEMA = {"value": str(SCHEMA_VERSION)}


def open_file(
    path: Path, *, create: bool, read_only: bool, busy_timeout_s: float
) -> tuple[Engine, bool]:
    """An engine for the store file, and whether it can only be read.

    Raises:
        StoreError: there is no such file, it is not a whole store of this version, or it cannot
            be reached.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - a link to a store stays a link
    if path.is_dir():
        raise StoreError(f"The store {path} is a folder; give the path of a file in it.")
    if not path.exists():
        if read_only or not create:
            raise StoreError(f"There is no store at {path}: index a document there first.")
        _create(path)
    read_only = read_only or not (_writable(path) and _writable(path.parent))
    version = check_file(path, busy_timeout_s)
    if version < SCHEMA_VERSION and read_only:
        raise StoreError(
            f"The store {path} was written by an older hmars (schema {version}) and can only be "
            "read: open it once where it can be written to, which brings it up to date."
        )
    engine = _engine(_uri(path, read_only=read_only), read_only, busy_timeout_s)
    if version < SCHEMA_VERSION:
        _bring_up_to_date(engine, path)
    return engine, read_only


def _bring_up_to_date(engine: Engine, path: Path) -> None:
    """Add the tables that an earlier version lacks; what is there stays as it is."""
    try:
        with engine.execution_options(**{WRITE_OPTION: True}).begin() as connection:
            metadata.create_all(connection)
            connection.execute(meta.update().where(meta.c.name == "schema").values(_SCHEMA))
            connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")
    except DBAPIError as error:
        raise explain(error.orig, str(path)) from None


def check_file(path: Path, busy_timeout_s: float = 60.0) -> int:
    """Refuse a file that is not a whole store, without changing it; the version of its schema."""
    size = path.stat().st_size
    if size < SHORTEST_FILE:
        # SQLite would take it for an empty database.
        raise StoreError(
            f"The store {path} has {size} bytes, so it was cut off or is no store: "
            "restore a copy, or move it away and index again."
        )
    try:
        with closing(_connect(_uri(path, read_only=True), busy_timeout_s)) as connection:
            version = _check_identity(path, _pragma(connection, "application_id"), connection)
            _check_whole(path, size, connection)
            return version
    except sqlite3.Error as error:
        raise explain(error, str(path)) from None


def _check_identity(path: Path, application_id: int, connection: sqlite3.Connection) -> int:
    if application_id != APPLICATION_ID:
        raise StoreError(
            f"The file {path} is a database of another program: choose another path for the store."
        )
    version = _pragma(connection, "user_version")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"The store {path} was written by a newer hmars (schema {version}, this one reads "
            f"{SCHEMA_VERSION}): update hmars."
        )
    connection.execute(f"SELECT value FROM {meta.name} LIMIT 1").fetchone()
    return version


def _check_whole(path: Path, size: int, connection: sqlite3.Connection) -> None:
    """Find a cut-off file that SQLite itself accepts because a write-ahead log lies beside it."""
    pages = _pragma(connection, "page_count")
    page_size = _pragma(connection, "page_size")
    missing = pages - size // page_size
    if missing <= 0:
        return
    wal = _beside(path, "-wal")
    frames = wal.stat().st_size // (page_size + WAL_FRAME_HEADER) if wal.exists() else 0
    damaged = missing > frames
    if not damaged and pages <= SMALL_FILE_PAGES:
        damaged = connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",)
    if damaged:
        raise _damaged(str(path))


def _create(path: Path) -> None:
    """Build a whole store beside the path and link it in; whoever comes second uses the first."""
    new = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        engine = _engine(f"{new.as_uri()}?mode=rwc", False, 10.0)
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")
                metadata.create_all(connection)
                connection.execute(meta.insert().values(name="schema", **_SCHEMA))
                connection.commit()
        finally:
            engine.dispose()
        _turn_wal_on(new)
        _link(new, path)
    except OSError as error:
        raise StoreError(
            f"The store {path} cannot be made ({error.strerror or error}): choose another path."
        ) from None
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            with suppress(OSError):
                _beside(new, suffix).unlink()


def _turn_wal_on(new: Path) -> None:
    with closing(_connect(f"{new.as_uri()}?mode=rw", 10.0)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()


def _link(new: Path, path: Path) -> None:
    try:
        os.link(new, path)
    except FileExistsError:
        return
    except OSError:
        # A file system without hard links.
        if not path.exists():
            new.rename(path)


def _engine(uri: str, read_only: bool, busy_timeout_s: float) -> Engine:
    engine = create_engine(
        "sqlite+pysqlite://",
        creator=lambda: _connect(uri, busy_timeout_s),
        poolclass=QueuePool,
        pool_size=4,
        max_overflow=-1,
    )
    pragmas = SETTINGS if read_only else SETTINGS + DURABLE
    if "mode=rwc" in uri:
        # Only an empty file can take its page size.
        pragmas = (f"PRAGMA page_size = {PAGE_SIZE}", *pragmas)
    event.listen(engine, "connect", _on_connect(pragmas))
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect(
    pragmas: tuple[str, ...],
) -> Callable[[DBAPIConnection, ConnectionPoolEntry], None]:
    def run(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(pragma)
        cursor.close()

    return run


def _on_begin(connection: Connection) -> None:
    # A write takes its lock at once: a read that turns into a write cannot wait, only fail.
    write = connection.get_execution_options().get(WRITE_OPTION)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def scrub(engine: Engine) -> bool:
    """Move the write-ahead log into the file and empty it; False if a reader stands in the way.

    Deleted text is zeroed in the file at once (secure delete), but older copies of its pages stay
    in the log until then.
    """
    raw = engine.raw_connection()
    try:
        cursor = raw.cursor()
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        busy, _frames, _moved = cursor.fetchall()[0]
        cursor.close()
        return not busy
    finally:
        raw.close()


def explain(error: BaseException | None, location: str) -> StoreError:
    """One sentence for what SQLite reports."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        message = "is locked by another process: wait until that has finished and run this again"
    elif primary == sqlite3.SQLITE_FULL:
        message = "cannot grow, the disk is full: free some space and run this again"
    elif primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        message = "is read-only: make the file and its folder writable, or choose another store"
    elif primary == sqlite3.SQLITE_CANTOPEN:
        message = "cannot be opened: look at the permissions of the file and its folder"
    elif primary == sqlite3.SQLITE_NOTADB:
        message = "is not a store of hmars: choose another path for the store"
    elif primary == sqlite3.SQLITE_CORRUPT:
        return _damaged(location)
    elif primary == sqlite3.SQLITE_IOERR:
        message = "cannot be read or written (I/O error): look at the disk and run this again"
    else:
        message = f"reports '{error}': see whether the file is a store of this version of hmars"
    return StoreError(f"The store {location} {message}.")


def _damaged(location: str) -> StoreError:
    return StoreError(
        f"The store {location} is damaged or cut off: "
        "restore a copy, or move it away and index again."
    )


def _connect(uri: str, busy_timeout_s: float) -> sqlite3.Connection:
    return sqlite3.connect(
        uri, uri=True, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False
    )


def _uri(path: Path, *, read_only: bool) -> str:
    """`mode=rw` never makes a file: a store that vanishes is an error, not an empty store."""
    if not read_only:
        return f"{path.as_uri()}?mode=rw"
    # Without a log beside it nobody has the store open, and a folder that cannot be written to
    # cannot take the files that sharing needs.
    alone = not _beside(path, "-wal").exists()
    return f"{path.as_uri()}?mode=ro{'&immutable=1' if alone else ''}"


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
