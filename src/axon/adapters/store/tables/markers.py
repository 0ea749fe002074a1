"""Markers of journal barriers that the persister has reached, in a database. Knows no turn."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import translated

KEPT_S = 600.0
"""Seconds that a marker is kept, far longer than a barrier waits."""


class SqlMarkers:
    """The ``markers`` table."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = _insert(database.dialect)

    async def put(self, marker_ids: Sequence[str], *, at: float) -> None:
        forget = delete(schema.markers).where(schema.markers.c.noted_at < at - KEPT_S)
        rows = [{"id": marker_id, "noted_at": at} for marker_id in sorted(set(marker_ids))]
        with translated():
            async with self._database.begin() as connection:
                if rows:
                    await connection.execute(self._insert, rows)
                await connection.execute(forget)

    async def seen(self, marker_id: str) -> bool:
        query = select(schema.markers.c.id).where(schema.markers.c.id == marker_id)
        with translated():
            async with self._database.connect() as connection:
                return (await connection.execute(query)).one_or_none() is not None


def _insert(dialect: str) -> Any:
    insert = sqlite.insert(schema.markers) if dialect == "sqlite" else postgresql.insert(schema.markers)
    return insert.on_conflict_do_nothing()
