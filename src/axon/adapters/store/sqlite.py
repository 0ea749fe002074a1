"""The embedded store: one SQLite file, for one server process and the command line. Not for network file systems.

Commits survive a killed process and, if the disk honours fsync, a power failure: write-ahead log with a full sync at
every commit. Erased text is overwritten in the file, and soon afterwards in the write-ahead log (``sqlite_scrub``).
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.sql.dml import Update

from axon.adapters.service_address import ServiceAddress
from axon.adapters.store.database import Database, Statement
from axon.adapters.store.driver_errors import translated
from axon.adapters.store.sql_store import SqlStore, tables_of
from axon.adapters.store.sqlite_insert import Insert, Run, insert_of
from axon.adapters.store.sqlite_scrub import Scrubber
from axon.adapters.store.start_errors import explained
from axon.adapters.store.version import is_current
from axon.errors import DependencyDown, Misconfigured
from axon.runtime.clock import Clock, SystemClock
from axon.runtime.service_url import shown

if TYPE_CHECKING:
    from sqlalchemy.sql.dml import UpdateBase

_SCHEME = "sqlite:///"
_BUSY_PAUSE_S = 0.01
_DEFERRED: Final = "DEFERRED"
"""The driver begins a transaction before the first write, as SQLAlchemy expects; it takes the lock with that write."""


class SqliteStore(SqlStore):
    """All aggregates in one file; ``source`` is a path or a ``sqlite:///`` URL."""

    def __init__(
        self,
        source: str | Path,
        *,
        busy_timeout_s: float = 5.0,
        max_bytes: int | None = None,
        num_connections: int = 4,
        clock: Clock | None = None,
    ) -> None:
        self._path = sqlite_path(source)
        self._busy_timeout_s = busy_timeout_s
        self._max_bytes = max_bytes
        self._num_connections = num_connections
        self._clock = clock or SystemClock()
        self._engine: AsyncEngine | None = None

    async def open(self) -> None:
        """Creates the file if needed, readable by its owner only, and migrates its tables."""
        engine = self._make_engine()
        with explained(ServiceAddress(url=f"{_SCHEME}{self._path}")):
            await self._bring_up(engine)
        self._engine = engine
        self._scrubber = Scrubber(self._path)
        self._writer = _Writer(self._make_writing_engine(), on_erased=self._scrubber.note_erased)
        self._tables = tables_of(Database(engine, transact=self._writer.transact, on_erased=self._scrubber.note_erased))
        self._scrubber.note_erased()  # a process that died may have left erased text in the log

    async def aclose(self) -> None:
        engine, self._engine, self._tables = self._engine, None, None
        if engine is not None:
            await asyncio.to_thread(self._writer.close)
            await asyncio.to_thread(self._scrubber.close)
            await engine.dispose()

    async def _bring_up(self, engine: AsyncEngine) -> None:
        """Makes the file and migrates its tables; disposes of the engine when that fails."""
        try:
            with translated():
                await asyncio.to_thread(self._make_file)
                if not await is_current(engine):
                    await asyncio.to_thread(self._migrate)
        except BaseException as error:
            await engine.dispose()
            if isinstance(error, DependencyDown) and "not a database" in str(error.__cause__):
                raise Misconfigured(f"{self._path} is no database of Axon's: move it away, or name another.") from None
            raise

    def _make_file(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.touch(mode=0o600)
        self._write_ahead()

    def _write_ahead(self) -> None:
        """Switches the file to write-ahead logging, which persists. Retries, because SQLite reports busy without
        waiting while another process switches."""
        give_up_at = self._clock.monotonic() + self._busy_timeout_s
        connection = sqlite3.connect(self._path, timeout=self._busy_timeout_s)
        try:
            while True:
                try:
                    connection.execute("PRAGMA journal_mode=WAL")
                    return
                except sqlite3.OperationalError:
                    if self._clock.monotonic() > give_up_at:
                        raise
                    time.sleep(_BUSY_PAUSE_S)
        finally:
            connection.close()

    def _make_engine(self) -> AsyncEngine:
        engine = create_async_engine(
            URL.create("sqlite+aiosqlite", database=str(self._path)),
            pool_size=self._num_connections,
            max_overflow=0,
            pool_timeout=self._busy_timeout_s,
            connect_args={"timeout": self._busy_timeout_s},
            hide_parameters=True,  # parameters hold users' text, and errors are logged
        )
        event.listen(engine.sync_engine, "connect", self._prepare)
        return engine

    def _make_writing_engine(self) -> Engine:
        engine = create_engine(
            URL.create("sqlite", database=str(self._path)),
            pool_size=1,
            max_overflow=0,
            connect_args={"timeout": self._busy_timeout_s},
            hide_parameters=True,
        )
        event.listen(engine, "connect", self._prepare)
        return engine

    def _prepare(self, connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        for setting in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            cursor.execute(f"PRAGMA {setting}")
        if self._max_bytes is not None:
            cursor.execute("PRAGMA page_size")
            (page_size,) = cursor.fetchone()
            cursor.execute(f"PRAGMA max_page_count={self._max_bytes // page_size}")
        cursor.close()

    def _migrate(self) -> None:
        from axon.adapters.store.migrate import upgrade_file

        upgrade_file(self._path, busy_timeout_s=self._busy_timeout_s)


class _Writer:
    """Runs transactions in a thread of its own, each with one hop to the thread and back.

    The asynchronous driver takes a hop for every statement, its cursor and the commit. Inserts go to the driver itself:
    SQLAlchemy's part of a transaction costs as much as SQLite's. All rows of an insert are one statement, which SQLite
    commits by itself: the driver gives up the interpreter's lock in every statement, and beside a busy event loop it
    waits up to 5 ms to get it back.
    """

    def __init__(self, engine: Engine, *, on_erased: Callable[[], None]) -> None:
        self._engine, self._on_erased = engine, on_erased
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._inserts: dict[UpdateBase, Insert | None] = {}
        """By statement: the text that inserts any number of rows; None for a statement that is no such insert."""

    async def transact(self, statements: Sequence[Statement]) -> None:
        runs = self._runs(statements)
        work = partial(self._transact_any, statements) if runs is None else partial(self._transact, runs)
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """Returns when the last transaction has ended."""
        self._thread.shutdown()
        self._engine.dispose()

    def _runs(self, statements: Sequence[Statement]) -> list[Run] | None:
        """The texts to run with their values; None if a statement is no insert of rows."""
        runs: list[Run] = []
        for statement, parameters in statements:
            if statement not in self._inserts:
                self._inserts[statement] = insert_of(statement)
            if (insert := self._inserts[statement]) is None:
                return None
            runs += insert.runs([parameters] if isinstance(parameters, Mapping) else parameters)
        return runs

    def _transact(self, runs: Sequence[Run]) -> None:
        with closing(self._engine.raw_connection()) as pooled:  # the pool rolls back what is not committed
            connection = pooled.driver_connection
            assert isinstance(connection, sqlite3.Connection)
            # None is autocommit; otherwise the driver begins a transaction before the first statement.
            connection.isolation_level = None if len(runs) == 1 else _DEFERRED
            try:
                for text, values in runs:
                    connection.execute(text, values)
                connection.commit()
            except sqlite3.Error as error:
                raise DBAPIError.instance(None, None, error, sqlite3.Error, hide_parameters=True) from error
            finally:
                connection.isolation_level = _DEFERRED

    def _transact_any(self, statements: Sequence[Statement]) -> None:
        num_changed = 0
        with self._engine.begin() as connection:
            for statement, parameters in statements:
                changed = connection.execute(statement, parameters)
                num_changed += changed.rowcount if isinstance(statement, Update) else 0
        if num_changed:  # the only updates here take the text of turns that were erased while they ran
            self._on_erased()


def sqlite_path(source: str | Path) -> Path:
    """The file of a path or URL; refuses in-memory databases, because the store must outlive the process."""
    name = str(source).removeprefix(_SCHEME)
    if not name or "://" in name or ":memory:" in name:
        raise Misconfigured(f"{shown(str(source))!r} names no SQLite file; use {_SCHEME}path/to/axon.db")
    return Path(name)
