"""Transactions on either database, with errors that say what to do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    Insert,
    Table,
    create_engine,
    inspect,
    make_url,
    select,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.exc import ArgumentError, DBAPIError

from hmars.errors import MissingExtraError, StoreError
from hmars.store import sqlite
from hmars.store.schema import SCHEMA_VERSION, meta, metadata

Result = TypeVar("Result")
_WRITER: dict[str, dict[str, Any]] = {
    "sqlite": {sqlite.WRITE_OPTION: True},
    # Two writers wait for each other's rows instead of failing.
    "postgresql": {"isolation_level": "READ COMMITTED"},
}


class Database:
    """One store, whatever holds it. Safe to use from several threads."""

    def __init__(self, engine: Engine, location: str, *, read_only: bool) -> None:
        self._engine = engine
        self._writer = engine.execution_options(**_WRITER[engine.dialect.name])
        self._write_lock = threading.Lock()
        self.location = location
        self.read_only = read_only

    @classmethod
    def open(
        cls, location: str | Path, *, create: bool, read_only: bool, busy_timeout_s: float
    ) -> Database:
        """Open a path or an SQLAlchemy URL."""
        text = str(location)
        if "://" in text and not isinstance(location, Path):
            try:
                url = make_url(text)
            except ArgumentError:
                raise StoreError(
                    "The store URL cannot be understood: write it as DIALECT://USER@HOST/NAME."
                ) from None
            if not url.drivername.startswith("sqlite"):
                return cls._open_server(text, create=create, read_only=read_only)
            if not url.database or url.database == ":memory:":
                raise StoreError("A store in memory keeps nothing: give the path of a file.")
            location = url.database
        path = Path(location).expanduser()
        engine, only_reads = sqlite.open_file(
            path, create=create, read_only=read_only, busy_timeout_s=busy_timeout_s
        )
        return cls(engine, str(path), read_only=only_reads)

    @classmethod
    def _open_server(cls, text: str, *, create: bool, read_only: bool) -> Database:
        url = make_url(text)
        if url.get_backend_name() != "postgresql":
            raise StoreError(
                f"A store cannot live in '{url.drivername}': give a path, or a postgresql:// URL."
            )
        try:
            engine = create_engine(url, isolation_level="REPEATABLE READ", pool_pre_ping=True)
        except ModuleNotFoundError:
            raise MissingExtraError("A store in PostgreSQL", "postgres") from None
        database = cls(engine, url.render_as_string(hide_password=True), read_only=read_only)
        database._prepare_server(create and not read_only)
        return database

    def _prepare_server(self, create: bool) -> None:
        with self._translated(), self._engine.begin() as connection:
            if not inspect(connection).has_table(meta.name):
                if not create:
                    raise StoreError(f"There is no store at {self.location}.")
                metadata.create_all(connection)
                connection.execute(meta.insert().values(name="schema", value=str(SCHEMA_VERSION)))
            found = connection.scalar(select(meta.c.value).where(meta.c.name == "schema"))
            version = int(found or 0)
            if version > SCHEMA_VERSION:
                raise StoreError(
                    f"The store {self.location} was written by a newer hmars: update hmars."
                )
            if version < SCHEMA_VERSION and not self.read_only:
                metadata.create_all(connection)
                newer = meta.update().where(meta.c.name == "schema")
                connection.execute(newer.values(value=str(SCHEMA_VERSION)))

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` on one unchanging state of the store."""
        with self._translated(), self._engine.connect() as connection:
            return work(connection)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` in one transaction: all of it is durable on return, or none of it."""
        if self.read_only:
            raise StoreError(
                f"The store {self.location} is read-only: make the file and its folder writable, "
                "or choose another store."
            )
        with self._write_lock, self._translated(), self._writer.begin() as connection:
            return work(connection)

    def scrub(self) -> bool:
        """Remove traces of deleted text from files beside the store; False if not possible now."""
        if self._engine.dialect.name != "sqlite":
            return False
        with self._translated():
            return sqlite.scrub(self._engine)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._explain(error) from error

    def _explain(self, error: DBAPIError) -> StoreError:
        if self._engine.dialect.name == "sqlite":
            return sqlite.explain(error.orig, self.location)
        first_line = str(error.orig).strip().partition("\n")[0]
        return StoreError(f"The store {self.location} cannot be used ({first_line}).")


def upsert(
    connection: Connection,
    table: Table,
    values: dict[str, Any],
    keys: tuple[str, ...],
    *,
    keep: str | None = None,
) -> None:
    """Insert a row, or replace the one with the same keys.

    With `keep` (a boolean column), a row where it is false is not replaced by one where it is
    true.
    """
    statement = _upsert(connection.dialect.name, table, tuple(values), keys, keep)
    connection.execute(statement, values)


@cache
def _upsert(
    dialect: str, table: Table, names: tuple[str, ...], keys: tuple[str, ...], keep: str | None
) -> Insert:
    """The two dialects spell it alike but do not share it. Cached, as building costs most."""
    module = postgresql if dialect == "postgresql" else sqlite_dialect
    statement = module.insert(table)
    changed = {name: statement.excluded[name] for name in names if name not in keys}
    where = None
    if keep is not None:
        where = table.c[keep].is_(True) | statement.excluded[keep].is_(False)
    return statement.on_conflict_do_update(index_elements=list(keys), set_=changed, where=where)
