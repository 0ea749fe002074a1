"""Puts a backup's tables into a database, inside the caller's transaction. Decides nothing about what was there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Table, delete

from axon.adapters.backup.contents import VERSION_TABLE, count, revision_of, summed, table_of, tables_of
from axon.adapters.backup.naming import TABLES, foreign_to
from axon.adapters.backup.reading import Archive
from axon.adapters.backup.rows import Row, unpacked
from axon.adapters.store.migrate import upgrade
from axon.domain.backup import Manifest, TableFacts
from axon.errors import InvalidInput
from axon.runtime.failpoints import failpoint

_ROWS_AT_ONCE = 1000
_NOT_OF_A_STORE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)
"""What Python raises about values that no store has ever had."""


def load(connection: Connection, archive: Archive, manifest: Manifest, *, compare: bool = False) -> None:
    """Replaces what is in the database by the backup, and migrates it to this release's tables.

    The number of rows of each table is compared, with ``compare`` also their contents.
    """
    make_tables(connection, manifest.revision)
    present = {str(table.name): set(table.columns.keys()) for table in tables_of(connection)}
    for fault in foreign_to(present, manifest):
        raise InvalidInput(f"The backup cannot be used: {fault}. Use another backup.")
    with as_of_a_store():
        for facts in manifest.tables:
            table = table_of(facts)
            for _, part in archive.members(manifest, f"{TABLES}/{facts.name}"):
                _insert(connection, table, unpacked(part, num_columns=len(facts.columns)))
                failpoint("restore.part")
            _check(connection, table, facts, compare=compare)
        upgrade(connection)


@contextmanager
def as_of_a_store() -> Iterator[None]:
    """Raises ``InvalidInput`` where the rows of a backup have values that nobody can work with. Only who forges an
    archive gets them past its digests."""
    try:
        yield
    except _NOT_OF_A_STORE as error:
        name = type(error).__name__
        raise InvalidInput(f"The backup cannot be used: its rows are none of a store ({name}).") from error


def make_tables(connection: Connection, revision: str) -> None:
    """Makes empty tables of this migration. Tables that are at it already are kept, with the rights that others have
    to them; tables of another migration are made anew."""
    tables = tables_of(connection)
    if revision_of(connection) != revision:
        present = [table.name for table in tables] + ([VERSION_TABLE] if revision_of(connection) else [])
        for name in present:
            connection.exec_driver_sql(f"DROP TABLE {name}")
        upgrade(connection, revision)
        tables = tables_of(connection)
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"TRUNCATE {', '.join(table.name for table in tables)}")
    else:
        for table in tables:
            connection.execute(delete(table))


def _insert(connection: Connection, table: Table, rows: Iterator[Row]) -> None:
    """A few rows at a time: a small part of a forged archive may have millions."""
    while few := list(islice(rows, _ROWS_AT_ONCE)):
        _insert_few(connection, table, few)


def _insert_few(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    if connection.dialect.name == "postgresql":
        _copy(connection, f'COPY "{table.name}" ({names}) FROM STDIN', rows)
    else:
        marks = ", ".join("?" for _ in table.columns)
        values: Any = [tuple(row) for row in rows]
        connection.exec_driver_sql(f'INSERT INTO "{table.name}" ({names}) VALUES ({marks})', values)


def _copy(connection: Connection, statement: str, rows: Sequence[Row]) -> None:
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def _check(connection: Connection, table: Table, facts: TableFacts, *, compare: bool) -> None:
    found = count(connection, table)
    if found != facts.num_rows:
        raise InvalidInput(f"{facts.name} has {found} rows after the restore, and {facts.num_rows} in the manifest.")
    if compare and summed(connection, table).digest != facts.digest:
        raise InvalidInput(f"The rows of {facts.name} are not those that were backed up.")
