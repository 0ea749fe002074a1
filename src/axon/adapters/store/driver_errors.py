"""What a database's failures mean to the rest of Axon. No driver's error passes this edge.

PostgreSQL names each failure by a code of five letters (SQLSTATE) whose first two are its class; the driver's class
says less. A failure without a code was found by the driver itself, before anything was sent.
"""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError, SQLAlchemyError, StatementError

from axon.errors import DependencyDown

DRIVER_ERRORS = (SQLAlchemyError, sqlite3.Error, OSError)
"""What the engine raises; a passed deadline is an ``OSError``, PostgreSQL's own errors come wrapped (``Database``)."""
VALUE_ERRORS = (UnicodeError, OverflowError)
"""What drivers raise over one value that they cannot send."""

READ_ONLY = "25006"
_REFUSED = "record_refused"
_DISK_FULL = "53100"
_RECORD_CLASSES = ("22", "23", "54")
"""Data it cannot hold, a broken constraint, a limit of its own: another record can still get in."""


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
    """For a read by id: one that the database cannot even hold, as with a NUL in it, is unknown and no failure."""
    try:
        with translated():
            yield
    except DependencyDown as failure:
        if failure.code != _REFUSED:
            raise


def translate(error: Exception) -> DependencyDown:
    """The failure in our words. The driver's stay in the cause, where no client reads them.

    Over one record they quote it, and a log would keep its text: then there is no cause.
    """
    if concerns_record(error):
        return _refused(_name(error))
    failure = _down(error)
    failure.__cause__ = error
    return failure


def refused() -> DependencyDown:
    """For a record that no retry would get in."""
    return _refused("not encodable")


def concerns_record(error: BaseException) -> bool:
    """Whether the failure is one value's own, so that others can still be written."""
    if state := sqlstate(error):
        return state.startswith(_RECORD_CLASSES)
    if isinstance(error, DBAPIError):
        return isinstance(error, (DataError, IntegrityError, ProgrammingError))
    return isinstance(error, (StatementError, *VALUE_ERRORS))


def sqlstate(error: BaseException | None) -> str:
    """PostgreSQL's name for the failure; empty where it has none."""
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


def _refused(why: str) -> DependencyDown:
    return DependencyDown(f"The store cannot take this record ({why}).", code=_REFUSED)


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
