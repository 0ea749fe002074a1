"""What a database's failures mean to the rest of Axon. No driver's error passes this edge."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError, SQLAlchemyError, StatementError

from axon.errors import DependencyDown

DRIVER_ERRORS = (SQLAlchemyError, sqlite3.Error, OSError)
VALUE_ERRORS = (UnicodeError, OverflowError)
"""What drivers raise over one value that they cannot send."""


@contextmanager
def translated() -> Iterator[None]:
    """Raises ``DependencyDown`` in place of a driver's error."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise down(error) from error
    except VALUE_ERRORS as error:
        raise refused() from error


def down(error: Exception) -> DependencyDown:
    """The failure in our words; the driver's own stay in the cause, where no client reads them."""
    if _is_full(error):
        return DependencyDown("The store has no room left.", code="storage_full")
    return DependencyDown("The store does not answer.", code="storage_unavailable")


def refused() -> DependencyDown:
    """For a record that no retry would get in."""
    return DependencyDown("The store cannot take this record.", code="record_refused")


def concerns_record(error: Exception) -> bool:
    """Whether the failure is one value's own, so that others can still be written."""
    if isinstance(error, DBAPIError):
        return isinstance(error, (DataError, IntegrityError, ProgrammingError))
    return isinstance(error, (StatementError, *VALUE_ERRORS))


def _is_full(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
            return True
        error = error.orig if isinstance(error, DBAPIError) else error.__cause__
    return False
