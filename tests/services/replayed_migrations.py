"""Has a new SQLite file get its tables by the statements that the migrations have run on an earlier one.

Alembic takes 60 ms of processor time to find, order and compile all migrations, for each of the thousand files that a
run of tests makes. The first new file of a process is migrated in earnest, and what was run then is run again on the
others, in the same order. A file that has tables already is always migrated in earnest.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, create_engine, event

from axon.adapters.store import migrate

_migrate = migrate.upgrade
_ran: list[tuple[str, Any]] = []


def replay_migrations() -> None:
    """From here on."""
    migrate.upgrade = _upgrade


def prepare() -> None:
    """Migrates a database in memory now, for the files after it."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        _upgrade(connection)
    engine.dispose()


def _upgrade(connection: Connection, to: str = "head") -> None:
    if to != "head" or not _is_new(connection):
        _migrate(connection, to)
    elif _ran:
        for statement, parameters in _ran:
            connection.exec_driver_sql(statement, parameters)
    else:
        with _recorded(connection) as ran:
            _migrate(connection, to)
        _ran.extend(ran)


def _is_new(connection: Connection) -> bool:
    if connection.dialect.name != "sqlite":
        return False
    return not connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()


@contextmanager
def _recorded(connection: Connection) -> Iterator[list[tuple[str, Any]]]:
    """The statements that are run within the block, with their parameters, but for those that only read."""
    ran: list[tuple[str, Any]] = []

    def note(_c: object, _cursor: object, statement: str, parameters: Any, _context: object, _many: bool) -> None:
        if not statement.lstrip().upper().startswith(("SELECT", "PRAGMA")):
            ran.append((statement, parameters))

    event.listen(connection, "after_cursor_execute", note)
    try:
        yield ran
    finally:
        event.remove(connection, "after_cursor_execute", note)
