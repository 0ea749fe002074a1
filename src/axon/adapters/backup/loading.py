"""Puts a backup's tables into a database, inside the caller's transaction. Decides nothing about what was there."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table, delete

from axon.adapters.backup.contents import VERSION_TABLE, count, revision_of, summed, table_of, tables_of
from axon.adapters.backup.reading import Archive
from axon.adapters.backup.rows import Row, unpacked
from axon.adapters.store.migrate import upgrade
from axon.domain.backup import Manifest, TableFacts
from axon.errors import InvalidInput
from axon.runtime.failpoints import failpoint

TABLES = "tables"
"""Folder of the archive with the rows: ``tables/NAME/NUMBER.rows.gz``."""


def load(connection: Connection, archive: Archive, manifest: Manifest, *, compare: bool = False) -> None:
    """Replaces what is in the database by the backup, and migrates it to this release's tables.

    The number of rows of each table is compared, with ``compare`` also their contents.
    """
    make_tables(connection, manifest.revision)
    for facts in manifest.tables:
        table = table_of(facts)
        for _, part in archive.members(manifest, f"{TABLES}/{facts.name}"):
            _insert(connection, table, unpacked(part))
            failpoint("restore.part")
        _check(connection, table, facts, compare=compare)
    upgrade(connection)


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


def _insert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
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
