"""Connections to a database, each lent for one transaction with a deadline. Knows no table and no database's name."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine


class Database:
    """An engine; without ``timeout_s`` the driver's own limits hold. ``single`` lends for lone reads."""

    def __init__(
        self, engine: AsyncEngine, *, timeout_s: float | None = None, single: AsyncEngine | None = None
    ) -> None:
        self._engine = engine
        self._single = single or engine
        self._timeout_s = timeout_s
        self._driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error

    @property
    def dialect(self) -> str:
        return self._engine.dialect.name

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncConnection]:
        """For one statement that reads."""
        with self._wrapped():
            async with asyncio.timeout(self._timeout_s), self._single.connect() as connection:
                yield connection

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """For one transaction, committed at the end."""
        with self._wrapped():
            async with asyncio.timeout(self._timeout_s), self._engine.begin() as connection:
                yield connection

    @contextmanager
    def _wrapped(self) -> Iterator[None]:
        """The driver's errors reach us bare from where SQLAlchemy does not look, as while it connects."""
        try:
            yield
        except self._driver_error as error:
            raise DBAPIError.instance(None, None, error, self._driver_error, hide_parameters=True) from error
