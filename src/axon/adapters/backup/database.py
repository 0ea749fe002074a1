"""Synchronous connections to a store for backups, on either database: one consistent view, or one transaction.

A store that serves requests has deadlines for every call. These have none: a backup takes as long as it takes.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from axon.adapters.service_address import ServiceAddress
from axon.adapters.store.driver_errors import sqlstate
from axon.adapters.store.postgres import parameters_for
from axon.adapters.store.sqlite import sqlite_path
from axon.adapters.store.start_errors import explained
from axon.errors import AxonError, DependencyDown, Misconfigured
from axon.runtime.service_url import cannot_be_on, scheme_of

APPLICATION = "axon backup"
"""Name of these connections in ``pg_stat_activity``; those of servers have the name ``axon``."""
_LOCK_NOT_AVAILABLE = "55P03"
_NO_DEADLINES = ("statement_timeout", "idle_in_transaction_session_timeout")


def is_sqlite(address: ServiceAddress) -> bool:
    """Whether the store is a SQLite file; raises ``Misconfigured`` for a store that is on neither database."""
    scheme = scheme_of(address.url)
    if scheme not in ("sqlite", "postgresql", "postgres"):
        raise Misconfigured(cannot_be_on("The store", address.url, "sqlite:/// or postgresql://"))
    return scheme == "sqlite"


def file_of(address: ServiceAddress) -> Path:
    """The file of a store on SQLite."""
    return sqlite_path(address.url)


@contextmanager
def snapshot(address: ServiceAddress) -> Iterator[Connection]:
    """A connection that reads and sees the store as it was at one moment, whoever writes meanwhile.

    On SQLite that is a read transaction beside the write-ahead log, on PostgreSQL one of REPEATABLE READ.
    """
    with _connected(address) as connection:
        if is_sqlite(address):
            connection.exec_driver_sql("BEGIN")
        else:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            for name in _NO_DEADLINES:
                connection.exec_driver_sql(f"SET LOCAL {name} = 0")
        yield connection
        connection.rollback()


@contextmanager
def transaction(address: ServiceAddress, *, lock_timeout_s: float = 30.0) -> Iterator[Connection]:
    """A connection for one transaction, committed at the end of the block unless it raises."""
    with _connected(address) as connection:
        if is_sqlite(address):
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            for name in _NO_DEADLINES:
                connection.exec_driver_sql(f"SET LOCAL {name} = 0")
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{lock_timeout_s:g}s'")
        yield connection
        connection.commit()


@contextmanager
def new_file(path: Path) -> Iterator[Connection]:
    """A transaction in a new SQLite file, which is synced at the end. Without a journal: if the block raises, or the
    process is killed, the file is worth nothing."""
    path.touch(mode=0o600)
    engine = _sqlite_engine(path)
    try:
        with _translated(ServiceAddress(url=f"sqlite:///{path}")), engine.connect() as connection:
            for setting in ("journal_mode=OFF", "synchronous=OFF"):
                connection.exec_driver_sql(f"PRAGMA {setting}")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()
    finally:
        engine.dispose()


def users_of(connection: Connection) -> int:
    """Number of connections that servers have to this PostgreSQL database; 0 for a file, which has a lock."""
    if connection.dialect.name == "sqlite":
        return 0
    query = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'axon' AND pid <> pg_backend_pid()"
    )
    return int(connection.scalar(text(query)) or 0)


def require_unused(address: ServiceAddress) -> None:
    """Raises ``Misconfigured`` if a process has the SQLite store open, whatever its data folder.

    Every connection that has read a store with a write-ahead log keeps a lock on its file until it is closed.
    """
    path = file_of(address)
    if not path.is_file():
        return
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=0)) as connection:
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.rollback()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise Misconfigured(f"A process uses the store {path}. Stop Axon's processes, and try again.") from None
        except sqlite3.DatabaseError:
            return  # what is no database is in use by no server


@contextmanager
def _connected(address: ServiceAddress) -> Iterator[Connection]:
    engine = _sqlite_engine(_existing(address)) if is_sqlite(address) else _postgres_engine(address)
    try:
        with _translated(address):
            with explained(address), _as_down():
                connection = engine.connect()
            with connection:
                yield connection
    finally:
        engine.dispose()


def _existing(address: ServiceAddress) -> Path:
    path = file_of(address)
    if not path.exists():
        raise Misconfigured(f"There is no store at {path}: name another with --data-dir or --store.")
    return path


def _sqlite_engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)), connect_args={"timeout": 30.0}, hide_parameters=True
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver would begin late, and not for reads

    return engine


def _postgres_engine(address: ServiceAddress) -> Engine:
    parameters = {**parameters_for(address), "application_name": APPLICATION}
    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(**parameters, prepare_threshold=None),
        hide_parameters=True,
        use_native_hstore=False,
    )


@contextmanager
def _as_down() -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, psycopg.Error, sqlite3.Error, OSError) as error:
        raise DependencyDown("The store does not answer.", code="storage_unavailable") from error


@contextmanager
def _translated(address: ServiceAddress) -> Iterator[None]:
    """Raises ours in place of a driver's error. The text of a failed statement has no values in it."""
    try:
        yield
    except AxonError:
        raise
    except (SQLAlchemyError, psycopg.Error, sqlite3.Error) as error:
        _refuse(address, error)


def _refuse(address: ServiceAddress, error: Exception) -> NoReturn:
    if sqlstate(error) == _LOCK_NOT_AVAILABLE:
        raise DependencyDown("The store's tables are in use, and were not free in time. Stop Axon's processes.")
    store = str(file_of(address)) if is_sqlite(address) else "The PostgreSQL store"
    cause = error.orig if isinstance(error, DBAPIError) else error
    with contextlib.suppress(AttributeError):
        primary = cause.diag.message_primary  # type: ignore[union-attr]
        cause = primary or cause  # what PostgreSQL says without the row that it concerns
    raise DependencyDown(f"{store} cannot be used: {cause}.") from error
