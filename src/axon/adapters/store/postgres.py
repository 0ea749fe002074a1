"""The store on PostgreSQL, 15 and later, also behind pgbouncer in transaction mode: it uses no session state.

Every call has a deadline and none is retried, because only the caller knows whether a retry is safe. A query whose
client is gone runs on at the server; set ``statement_timeout`` on the role to bound it.
"""

import asyncio
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import event, text
from sqlalchemy.engine.interfaces import ExceptionContext
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from axon.adapters.service_address import ServiceAddress, address_of
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import READ_ONLY, sqlstate, translated
from axon.adapters.store.postgres_connection import PostgresConnection, is_stale
from axon.adapters.store.sql_store import SqlStore, tables_of
from axon.adapters.store.start_errors import explained
from axon.adapters.store.version import is_current
from axon.errors import Misconfigured

_DEFAULTS = {
    "application_name": "axon",
    "connect_timeout": 2,
    # TCP keepalive finds a vanished peer while the connection is idle.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
}
_MIGRATION_LOCK = 0x41584F4E
"""Key of the advisory lock that serialises migrations."""


class PostgresStore(SqlStore):
    """All aggregates in one database; ``url`` has the form of PostgreSQL's own tools, ``postgresql://…``."""

    def __init__(
        self,
        url: str | ServiceAddress,
        *,
        timeout_s: float = 2.0,
        migration_timeout_s: float = 600.0,
        num_connections: int = 8,
    ) -> None:
        self._address = address_of(url)
        connection_parameters(self._address.url)  # raises what is wrong with it
        self._timeout_s = timeout_s
        self._migration_timeout_s = migration_timeout_s
        self._num_connections = num_connections
        self._engine: AsyncEngine | None = None

    async def open(self) -> None:
        """Connects and migrates the tables; of several processes one migrates and the others wait."""
        engine = self._make_engine()
        try:
            with explained(self._address), translated():
                async with asyncio.timeout(self._timeout_s):
                    current = await is_current(engine)
                if not current:
                    async with asyncio.timeout(self._migration_timeout_s):
                        await _migrate(engine)
        except BaseException:
            await engine.dispose()
            raise
        self._engine = engine
        # A single read needs no transaction: one round trip instead of three.
        lone = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._tables = tables_of(Database(engine, timeout_s=self._timeout_s, single=lone))

    async def aclose(self) -> None:
        engine, self._engine, self._tables = self._engine, None, None
        if engine is not None:
            await engine.dispose()

    def _make_engine(self) -> AsyncEngine:
        engine = create_async_engine(
            "postgresql+psycopg://",
            async_creator=self._connect,
            isolation_level="READ COMMITTED",
            pool_size=self._num_connections,
            max_overflow=0,
            pool_timeout=self._timeout_s,
            hide_parameters=True,  # parameters hold users' text, and errors are logged
            use_native_hstore=False,  # it would query the server for a type that no table has
        )
        event.listen(engine.sync_engine, "checkout", _replace_if_stale)
        event.listen(engine.sync_engine, "handle_error", _replace_if_read_only)
        return engine

    async def _connect(self) -> PostgresConnection:
        parameters = parameters_for(self._address)
        # pgbouncer may run the next transaction in another session, without this one's prepared statements.
        return await PostgresConnection.connect(**parameters, prepare_threshold=None)


async def _migrate(engine: AsyncEngine) -> None:
    from axon.adapters.store.migrate import upgrade

    async with engine.begin() as connection:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        # A migration that waits for a long transaction blocks every query behind it: fail and start again instead.
        await connection.execute(text("SET LOCAL lock_timeout = '5s'"))
        await connection.run_sync(upgrade)


def _replace_if_stale(connection: Any, _record: object, _proxy: object) -> None:
    """Replaces an idle connection that a restarted server has closed, without a round trip."""
    if is_stale(connection.driver_connection):
        raise InvalidatePoolError


def _replace_if_read_only(context: ExceptionContext) -> None:
    """Drops connections to a demoted server; its name may resolve to the new primary."""
    if sqlstate(context.original_exception) == READ_ONLY:
        context.is_disconnect = True


def parameters_for(address: ServiceAddress) -> dict[str, Any]:
    """Parameters of a new connection. With a CA file no server passes but one that the CA vouches for, by its name.
    What the URL says comes first."""
    trust = {} if address.ca_file is None else {"sslmode": "verify-full", "sslrootcert": str(address.ca_file)}
    return {**trust, **address.parsed(connection_parameters)}


def connection_parameters(url: str) -> dict[str, Any]:
    """Connection parameters of the URL over our defaults. Error messages do not quote the URL, which may hold a
    password."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise Misconfigured("The store's URL names no PostgreSQL database; use postgresql://user@host/database.")
    try:
        parameters = {**_DEFAULTS, **conninfo_to_dict(f"postgresql://{rest}")}
    except psycopg.Error:
        raise Misconfigured("The store's URL cannot be read; use postgresql://user@host/database.") from None
    if not all(_is_port(port) for port in str(parameters.get("port", "")).split(",")):
        raise Misconfigured("The store's URL cannot be read: its port is no number from 1 to 65535.")
    return parameters


def _is_port(text: str) -> bool:
    """Whether the text is a valid port; empty means the default."""
    return not text or (text.isascii() and text.isdigit() and 0 < int(text) < 65536)
