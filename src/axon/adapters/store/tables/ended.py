"""The turns that ended last, without their text, in a database. Reads no body."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, literal, select

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import translated
from axon.adapters.store.tables.turn_row import turn_of
from axon.domain.turn import Turn

_COLUMNS = schema.turns.c
_TEXTLESS = [column for column in _COLUMNS if column.name != "body"]


async def ended_turns(database: Database, *, since: float, limit: int) -> Sequence[Turn]:
    """Those that ended from ``since`` on and are not purged, the last first."""
    rows: list[Row[Any]] = []
    with translated():
        async with database.connect() as connection:
            for is_retained in (False, True):  # the index by which it is read begins with it
                rows += (await connection.execute(_ended(since, is_retained).limit(limit))).all()
    return [turn_of(row) for row in sorted(rows, key=_by_end, reverse=True)[:limit]]


def _ended(since: float, is_retained: bool) -> Select[Any]:
    kept = (_COLUMNS.retain == is_retained, _COLUMNS.body.is_not(None), _COLUMNS.ended_at >= since)
    return select(*_TEXTLESS, literal(None).label("body")).where(*kept).order_by(_COLUMNS.ended_at.desc())


def _by_end(row: Row[Any]) -> tuple[float, str]:
    return row.ended_at, row.id
