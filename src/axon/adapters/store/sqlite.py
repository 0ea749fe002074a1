"""The embedded store: one SQLite file, for one server process and the command line. Not for network file systems.

Commits survive a killed process and, if the disk honours fsync, a power failure: write-ahead log with a full sync at
every commit. Purged text is overwritten in the file; the write-ahead log keeps it until the next checkpoint.
"""

import asyncio
import sqlite3
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, text
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.sql.dml import UpdateBase

from axon.adapters.store.conversations import SqlConversations
from axon.adapters.store.database import Database, Parameters, Statement
from axon.adapters.store.driver_errors import translated
from axon.adapters.store.keys import SqlKeys
from axon.adapters.store.markers import SqlMarkers
from axon.adapters.store.pinned import SqlPinnedSessions
from axon.adapters.store.plans import SqlPlans
from axon.adapters.store.registry import SqlRegistry
from axon.adapters.store.start_errors import explained
from axon.adapters.store.storage import SqlStorage
from axon.adapters.store.tenants import SqlTenants
from axon.adapters.store.terms import SqlTerms
from axon.adapters.store.tombstones import SqlTombstones
from axon.adapters.store.turns import SqlTurns
from axon.adapters.store.usage import SqlUsage
from axon.adapters.store.version import is_current
from axon.errors import DependencyDown, Misconfigured
from axon.runtime.clock import Clock, SystemClock

_SCHEME = "sqlite:///"
_BUSY_PAUSE_S = 0.01


class SqliteStore:
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
        with explained(f"{_SCHEME}{self._path}"):
            await self._bring_up(engine)
        self._engine = engine
        self._writer = _Writer(self._make_writing_engine())
        database = Database(engine, transact=self._writer.transact)
        self._keys = SqlKeys(database)
        self._tenants = SqlTenants(database)
        self._plans = SqlPlans(database)
        self._registry = SqlRegistry(database)
        self._usage = SqlUsage(database)
        self._storage = SqlStorage(database)
        self._pinned = SqlPinnedSessions(database)
        self._turns = SqlTurns(database)
        self._markers = SqlMarkers(database)
        self._terms = SqlTerms(database)
        self._conversations = SqlConversations(database)
        self._tombstones = SqlTombstones(database)

    async def aclose(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await asyncio.to_thread(self._writer.close)
            await engine.dispose()

    @property
    def keys(self) -> SqlKeys:
        self._opened()
        return self._keys

    @property
    def tenants(self) -> SqlTenants:
        self._opened()
        return self._tenants

    @property
    def plans(self) -> SqlPlans:
        self._opened()
        return self._plans

    @property
    def registry(self) -> SqlRegistry:
        self._opened()
        return self._registry

    @property
    def usage(self) -> SqlUsage:
        self._opened()
        return self._usage

    @property
    def storage(self) -> SqlStorage:
        self._opened()
        return self._storage

    @property
    def pinned(self) -> SqlPinnedSessions:
        self._opened()
        return self._pinned

    @property
    def turns(self) -> SqlTurns:
        self._opened()
        return self._turns

    @property
    def markers(self) -> SqlMarkers:
        self._opened()
        return self._markers

    @property
    def terms(self) -> SqlTerms:
        self._opened()
        return self._terms

    @property
    def conversations(self) -> SqlConversations:
        self._opened()
        return self._conversations

    @property
    def tombstones(self) -> SqlTombstones:
        self._opened()
        return self._tombstones

    async def ping(self) -> None:
        with translated():
            async with self._opened().connect() as connection:
                await connection.execute(text("SELECT 1 FROM turns LIMIT 1"))

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

    def _opened(self) -> AsyncEngine:
        if self._engine is None:
            raise DependencyDown("The store is not open.")
        return self._engine

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

    The asynchronous driver takes a hop for every statement, its cursor and the commit. Statements that are known
    beforehand go to the driver itself: SQLAlchemy's part of a transaction costs as much as SQLite's.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._compiled: dict[UpdateBase, tuple[str, dict[str, Any]] | None] = {}
        """By statement: its text and the values that it always has; None for one whose text depends on parameters."""

    async def transact(self, statements: Sequence[Statement]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._transact, statements)

    def close(self) -> None:
        """Returns when the last transaction has ended."""
        self._thread.shutdown()
        self._engine.dispose()

    def _transact(self, statements: Sequence[Statement]) -> None:
        known: list[tuple[str, list[Parameters]]] = []
        for statement, parameters in statements:
            if (compiled := self._compile(statement)) is None:
                self._transact_any(statements)
                return
            text, constants = compiled
            rows = [parameters] if isinstance(parameters, Mapping) else parameters
            known.append((text, [{**constants, **row} for row in rows]))
        self._transact_known(known)

    def _transact_known(self, known: Sequence[tuple[str, list[Parameters]]]) -> None:
        with closing(self._engine.raw_connection()) as pooled:  # the pool rolls back what is not committed
            cursor = pooled.cursor()
            try:
                for text, rows in known:
                    cursor.executemany(text, rows)
                pooled.commit()
            except sqlite3.Error as error:
                raise DBAPIError.instance(None, None, error, sqlite3.Error, hide_parameters=True) from error

    def _transact_any(self, statements: Sequence[Statement]) -> None:
        with self._engine.begin() as connection:
            for statement, parameters in statements:
                connection.execute(statement, parameters)

    def _compile(self, statement: UpdateBase) -> tuple[str, dict[str, Any]] | None:
        """Compiles a statement once: SQLAlchemy's own cache costs more than SQLite takes to write a turn."""
        if statement not in self._compiled:
            compiled = statement.compile(dialect=sqlite_dialect(paramstyle="named"))
            constants = {name: value for name, value in compiled.params.items() if value is not None}
            self._compiled[statement] = None if compiled.post_compile_params else (str(compiled), constants)
        return self._compiled[statement]


def sqlite_path(source: str | Path) -> Path:
    """The file of a path or URL; refuses in-memory databases, because the store must outlive the process."""
    name = str(source).removeprefix(_SCHEME)
    if not name or "://" in name or ":memory:" in name:
        raise Misconfigured(f"{source!r} names no SQLite file; use {_SCHEME}path/to/axon.db")
    return Path(name)
