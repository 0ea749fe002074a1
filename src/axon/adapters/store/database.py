"""Connections to a database, each borrowed for one transaction with a deadline. Knows no table and no dialect."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.sql.dml import UpdateBase

Parameters = Mapping[str, Any]
Statement = tuple[UpdateBase, Parameters | Sequence[Parameters]]
"""A statement that writes, and its parameters; with a list of parameters it runs once for each."""


class Database:
    """Wraps an engine; without ``timeout_s`` the driver's own timeouts apply. ``single`` serves single reads.

    ``transact`` runs a transaction in a way of its own, where the driver has a quicker one for statements that are
    known beforehand. ``on_erased`` is told when text was erased, after the commit.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        timeout_s: float | None = None,
        single: AsyncEngine | None = None,
        transact: Callable[[Sequence[Statement]], Awaitable[None]] | None = None,
        on_erased: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine, self._on_erased = engine, on_erased
        self._transact = transact or self._transact_here
        self._single = single or engine
        self._timeout_s = timeout_s
        self._driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error

    @property
    def dialect(self) -> str:
        return self._engine.dialect.name

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncConnection]:
        """A connection for one reading statement."""
        with self._wrapped():
            async with asyncio.timeout(self._timeout_s), self._single.connect() as connection:
                yield connection

    @asynccontextmanager
    async def begin(self, *, erases: bool = False) -> AsyncIterator[AsyncConnection]:
        """A connection for one transaction, committed at the end. ``erases`` is for one that takes text away."""
        with self._wrapped():
            async with asyncio.timeout(self._timeout_s), self._engine.begin() as connection:
                yield connection
        if erases:
            self._on_erased()

    async def transact(self, statements: Sequence[Statement]) -> None:
        """Runs the statements in one transaction."""
        await self._transact(statements)

    async def _transact_here(self, statements: Sequence[Statement]) -> None:
        async with self.begin() as connection:
            for statement, parameters in statements:
                await connection.execute(statement, parameters)

    @contextmanager
    def _wrapped(self) -> Iterator[None]:
        """Wraps driver errors that SQLAlchemy does not wrap itself, as while it connects."""
        try:
            yield
        except self._driver_error as error:
            raise DBAPIError.instance(None, None, error, self._driver_error, hide_parameters=True) from error
