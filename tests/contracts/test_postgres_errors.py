"""Errors of PostgreSQL's driver in our words: none of them leaks, and each has its code."""

from collections.abc import AsyncIterator

import psycopg
import pytest
import sqlalchemy.exc
from psycopg import errors

from axon.adapters.store.driver_errors import translated
from axon.adapters.store.postgres import PostgresStore
from axon.errors import AxonError, DependencyDown
from tests.contracts.postgres_backend import fresh_database
from tests.contracts.postgres_store import calls, opened_store

pytestmark = pytest.mark.services


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A database on the shared server, for tests that do the server no harm."""
    async with fresh_database() as url:
        yield url


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    async with opened_store(url, timeout_s=30.0) as store:
        yield store


def tree(root: type[BaseException]) -> list[type[BaseException]]:
    """The error and its descendants; of the built-in ones only those, not what any other library derives from them."""
    children = [child for child in root.__subclasses__() if root.__module__ != "builtins" or _is_builtin(child)]
    return [root, *(leaf for child in children for leaf in tree(child))]


def _is_builtin(kind: type[BaseException]) -> bool:
    return kind.__module__ in ("builtins", "socket")


class TestFailures:
    async def test_none_of_the_drivers_errors_leaks(self, store: PostgresStore) -> None:
        kinds = {*tree(psycopg.Error), *errors._sqlcodes.values()}
        assert len(kinds) > 200
        for kind in kinds:
            for lend in (store._opened.database.connect, store._opened.database.begin):
                with pytest.raises(DependencyDown), translated():
                    async with lend():
                        raise kind("from the driver")
        await store.ping()

    async def test_none_of_the_errors_around_the_driver_leaks(self, store: PostgresStore) -> None:
        for kind in {*tree(OSError), *tree(sqlalchemy.exc.SQLAlchemyError)}:
            error = kind.__new__(kind)
            if isinstance(error, sqlalchemy.exc.DBAPIError):
                error = sqlalchemy.exc.DBAPIError.instance("", {}, psycopg.OperationalError("x"), psycopg.Error)
            with pytest.raises(DependencyDown), translated():
                async with store._opened.database.begin():
                    raise error

    async def test_an_error_while_connecting_is_translated_in_every_call(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with opened_store(url, timeout_s=30.0) as store:
            for error in (psycopg.OperationalError("x"), psycopg.InterfaceError("x"), OSError(5, "x"), TimeoutError()):

                async def fail(error: Exception = error, **_: object) -> None:
                    raise error

                monkeypatch.setattr("axon.adapters.store.postgres.PostgresConnection.connect", fail)
                assert store._engine is not None
                await store._engine.dispose()
                for call in calls(store):
                    with pytest.raises(DependencyDown):
                        await call()

    @pytest.mark.parametrize(
        ("kind", "code"),
        [
            (errors.DiskFull, "storage_full"),
            (errors.ReadOnlySqlTransaction, "store_read_only"),
            (errors.CharacterNotInRepertoire, "record_refused"),
            (errors.NumericValueOutOfRange, "record_refused"),
            (errors.UniqueViolation, "record_refused"),
            (errors.UndefinedTable, "storage_unavailable"),
            (errors.InsufficientPrivilege, "storage_unavailable"),
            (errors.DeadlockDetected, "storage_unavailable"),
            (errors.TooManyConnections, "storage_unavailable"),
            (errors.AdminShutdown, "storage_unavailable"),
        ],
    )
    async def test_each_failure_has_its_code(self, store: PostgresStore, kind: type[psycopg.Error], code: str) -> None:
        with pytest.raises(AxonError) as failure, translated():
            async with store._opened.database.begin():
                raise kind("from the driver")
        assert failure.value.code == code
