"""Translates database errors to ``DependencyDown``, so that no driver's error leaves the adapter.

PostgreSQL gives each failure a five-character code (SQLSTATE) whose first two characters are its class; the driver's
exception class is less precise. A failure without a code was detected by the driver, before anything was sent.
"""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError, SQLAlchemyError, StatementError

from axon.errors import DependencyDown

DRIVER_ERRORS = (SQLAlchemyError, sqlite3.Error, OSError)
"""Errors of the drivers; an expired deadline is an ``OSError``, and ``Database`` wraps psycopg's errors."""
VALUE_ERRORS = (UnicodeError, OverflowError)
"""Errors that drivers raise for a value that they cannot encode."""

READ_ONLY = "25006"
_REFUSED = "record_refused"
_DISK_FULL = "53100"
_RECORD_CLASSES = ("22", "23", "54")
"""SQLSTATE classes that concern one record only: invalid data, violated constraint, exceeded program limit."""


@contextmanager
def translated() -> Iterator[None]:
    """Raises ``DependencyDown`` in place of a driver's error."""
    try:
        yield
    except (*DRIVER_ERRORS, *VALUE_ERRORS) as error:
        failure = translate(error)
        raise failure from failure.__cause__


@contextmanager
def known_ids_only() -> Iterator[None]:
    """For reads by id: an id that the database cannot represent, as one with NUL, is unknown, not a failure."""
    try:
        with translated():
            yield
    except DependencyDown as failure:
        if failure.code != _REFUSED:
            raise


def translate(error: Exception) -> DependencyDown:
    """Translates a driver error. The original becomes the cause, which no client reads.

    An error about one record quotes it and its text would be logged, so that one has no cause.
    """
    if concerns_record(error):
        return _refused(_name(error))
    failure = _down(error)
    failure.__cause__ = error
    return failure


def refused() -> DependencyDown:
    """The error for a record that the store will never accept."""
    return _refused("not encodable")


def concerns_record(error: BaseException) -> bool:
    """Whether the failure concerns one record only, so that others can still be written."""
    if state := sqlstate(error):
        return state.startswith(_RECORD_CLASSES)
    if isinstance(error, DBAPIError):
        return isinstance(error, (DataError, IntegrityError, ProgrammingError))
    return isinstance(error, (StatementError, *VALUE_ERRORS))


def sqlstate(error: BaseException | None) -> str:
    """The failure's SQLSTATE; empty where it has none."""
    for link in _chain(error):
        if state := getattr(link, "sqlstate", None):
            return str(state)
    return ""


def _down(error: Exception) -> DependencyDown:
    if _is_full(error):
        return DependencyDown("The store has no room left.", code="storage_full")
    if sqlstate(error) == READ_ONLY:
        return DependencyDown("The store takes no writes now.", code="store_read_only")
    return DependencyDown("The store does not answer.", code="storage_unavailable")


def _refused(reason: str) -> DependencyDown:
    return DependencyDown(f"The store cannot take this record ({reason}).", code=_REFUSED)


def _name(error: Exception) -> str:
    return sqlstate(error) or type(getattr(error, "orig", error)).__name__


def _is_full(error: Exception) -> bool:
    for link in _chain(error):
        if isinstance(link, OSError) and link.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if isinstance(link, sqlite3.Error) and getattr(link, "sqlite_errorname", "") == "SQLITE_FULL":
            return True
    return sqlstate(error) == _DISK_FULL


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.orig if isinstance(error, DBAPIError) else error.__cause__
