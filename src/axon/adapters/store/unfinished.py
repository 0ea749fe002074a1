"""Counts of unfinished turns, in a database. Reads no body."""

from collections.abc import Sequence

from sqlalchemy import func, select

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import translated
from axon.domain.turn import TurnState, Unfinished

_COLUMNS = schema.turns.c
_COUNTS = (
    select(_COLUMNS.deployment, _COLUMNS.version, func.count().label("number"))
    .where(_COLUMNS.rank == TurnState.OPENED.rank)
    .group_by(_COLUMNS.deployment, _COLUMNS.version)
)


async def count_unfinished(database: Database) -> Sequence[Unfinished]:
    """Number of unfinished turns by deployment and version."""
    with translated():
        async with database.connect() as connection:
            rows = (await connection.execute(_COUNTS)).all()
    return [Unfinished(deployment=row.deployment, version=row.version, count=row.number) for row in rows]
