"""Counts of unfinished turns and whose the oldest is, in a database. Reads no body."""

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


async def first_unfinished(database: Database, deployment: str, version: str) -> str | None:
    """Tenant of the oldest unfinished turn of the version."""
    of_it = (_COLUMNS.deployment == deployment, _COLUMNS.version == version)
    query = select(_COLUMNS.tenant).where(_COLUMNS.rank == TurnState.OPENED.rank, *of_it)
    with translated():
        async with database.connect() as connection:
            found = await connection.execute(query.order_by(_COLUMNS.opened_at, _COLUMNS.id).limit(1))
            tenant: str | None = found.scalar_one_or_none()
    return tenant
