"""The tables of a store as a backup sees them: by name and kind, at whatever migration they are. Changes nothing."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Column, Connection, MetaData, Table, func, inspect, select, text

from axon.adapters.backup.rows import KINDS, Row, RowSum, encode_row, kind_of
from axon.adapters.store import schema
from axon.domain.backup import ColumnFacts, TableFacts
from axon.errors import Misconfigured

VERSION_TABLE = "alembic_version"
_ROWS_AT_ONCE = 64
"""Rows that the driver holds at a time; one may have megabytes of text."""
_OF_AN_EMPTY_STORE = ("registry_revision", "terms", "markers")
"""Tables with rows that a server writes before anybody has used it."""

_REVISIONS = frozenset(f"{number:04d}" for number in range(1, int(schema.HEAD) + 1))
"""Migrations that this release knows."""


def revision_of(connection: Connection) -> str | None:
    """The migration that a database is at; None if it has none of our tables."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))
    return found


def check_revision(revision: str | None) -> str:
    """The migration, if this release knows its tables; raises ``Misconfigured`` otherwise."""
    if revision is None:
        raise Misconfigured("The store has no tables of Axon's: name another with --store or --data-dir.")
    if revision not in _REVISIONS:
        raise Misconfigured(
            f"The tables are at migration {revision}, and this release knows {schema.HEAD} and those before it. "
            "Use the release that wrote them, or a later one."
        )
    return revision


def tables_of(connection: Connection) -> list[Table]:
    """Our tables that the database has, with the columns that it has."""
    looking = inspect(connection)
    present = set(looking.get_table_names())
    return [
        _table(name, [ColumnFacts(name=each["name"], kind=kind_of(each["type"])) for each in looking.get_columns(name)])
        for name in schema.metadata.tables
        if name in present
    ]


def table_of(facts: TableFacts) -> Table:
    """The table of a backup, to be written to either database."""
    return _table(facts.name, facts.columns)


def columns_of(table: Table) -> tuple[ColumnFacts, ...]:
    return tuple(ColumnFacts(name=str(column.name), kind=kind_of(column.type)) for column in table.columns)


def rows_of(connection: Connection, table: Table) -> Iterator[Row]:
    """All rows, a few at a time."""
    with connection.execute(select(table), execution_options={"yield_per": _ROWS_AT_ONCE}) as found:
        for row in found:
            yield tuple(row)


def summed(connection: Connection, table: Table) -> RowSum:
    """Number and digest of the rows that a table has."""
    total = RowSum()
    for row in rows_of(connection, table):
        total.add(encode_row(row))
    return total


def count(connection: Connection, table: Table) -> int:
    return int(connection.scalar(select(func.count()).select_from(table)) or 0)


def is_empty(connection: Connection) -> bool:
    """Whether nobody has used the store yet."""
    tables = [table for table in tables_of(connection) if table.name not in _OF_AN_EMPTY_STORE]
    return all(connection.execute(select(table).limit(1)).first() is None for table in tables)


def _table(name: str, columns: Sequence[ColumnFacts]) -> Table:
    return Table(name, MetaData(), *(Column(column.name, KINDS[column.kind]) for column in columns))


def require_empty(connection: Connection) -> None:
    """Raises ``Misconfigured`` if the database has rows of ours."""
    if revision_of(connection) is not None and not is_empty(connection):
        raise Misconfigured("The database of --into is not empty. Name one that is: `createdb axon_verify`.")
