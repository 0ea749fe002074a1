"""Tombstones of erased turns and sessions in a database. Knows no turn."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import translated


class SqlTombstones:
    """The ``tombstones`` table; ``SqlTurns`` reads it for every ended turn that it writes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        insert: Any = sqlite.insert if database.dialect == "sqlite" else postgresql.insert
        self._insert = insert(schema.tombstones).on_conflict_do_nothing()

    async def put(self, marks: Sequence[str], *, at: float) -> None:
        rows = [{"id": mark, "erased_at": at} for mark in sorted(set(marks))]
        with translated():
            async with self._database.begin() as connection:
                if rows:
                    await connection.execute(self._insert, rows)

    async def since(self, at: float) -> Sequence[str]:
        table = schema.tombstones
        with translated():
            async with self._database.begin() as connection:
                rows = await connection.execute(select(table.c.id).where(table.c.erased_at >= at))
                return [row.id for row in rows]

    async def purge(self, *, before: float) -> int:
        with translated():
            async with self._database.begin() as connection:
                forget = delete(schema.tombstones).where(schema.tombstones.c.erased_at < before)
                return (await connection.execute(forget)).rowcount
