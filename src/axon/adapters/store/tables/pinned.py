"""Which versions sessions are on, read from the columns of their turns. Writes nothing: the turns are the record."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, distinct, exists, func, select

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only
from axon.domain.model.adapter import adapted
from axon.domain.session.pin import LastPin, Pin

_COLUMNS = schema.turns.c
_SAID = (_COLUMNS.generation, _COLUMNS.version, _COLUMNS.adapter, _COLUMNS.opened_at)


class SqlPinnedSessions:
    """Queries of the ``turns`` table by pin."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def last_pin(self, key: str, *, session: str = "") -> LastPin | None:
        queries = self.queries(key)
        rows = [row for query in queries for row in await self._rows(query)]
        if not rows and session:
            rows = 2 * list(await self._rows(_newest_without_pin(session)))
        if len(rows) < len(queries):
            return None
        first, newest = rows
        pin = Pin(first.generation, adapted(first.version, first.adapter))
        return LastPin(pin=pin, newest=adapted(newest.version, newest.adapter), used_at=newest.opened_at)

    async def count(self, version: str, *, since: float) -> int:
        rows = await self._rows(self.counting(version, since))
        return int(rows[0][0]) if rows else 0

    async def keys(self, session: str) -> Sequence[str]:
        own = (_COLUMNS.session == session, _COLUMNS.session != "", _COLUMNS.pin != "")
        return [row.pin for row in await self._rows(select(_COLUMNS.pin).where(*own).distinct())]

    def queries(self, key: str) -> tuple[Select[Any], Select[Any]]:
        """Queries for the turn that decides a pin, and for the newest one under it; see ``domain/session/pin.py``."""
        highest = select(*_SAID).where(_COLUMNS.pin == key, _COLUMNS.pin != "").order_by(_COLUMNS.generation.desc())
        return (
            highest.order_by(_COLUMNS.ordinal, _COLUMNS.opened_at, _COLUMNS.id).limit(1),
            highest.order_by(_COLUMNS.opened_at.desc(), _COLUMNS.id.desc()).limit(1),
        )

    def counting(self, version: str, since: float) -> Select[Any]:
        """Counts pins by their turns of the version since then, without those that were moved on."""
        later = schema.turns.alias("later")
        moved_on = exists().where(
            later.c.pin == _COLUMNS.pin, later.c.pin != "", later.c.generation > _COLUMNS.generation
        )
        own = (_COLUMNS.version == version, _COLUMNS.opened_at >= since, _COLUMNS.pin != "")
        return select(func.count(distinct(_COLUMNS.pin))).where(*own, ~moved_on)

    async def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        rows: Sequence[Row[Any]] = ()
        with known_ids_only():
            async with self._database.connect() as connection:
                rows = (await connection.execute(query)).all()
        return rows


def _newest_without_pin(session: str) -> Select[Any]:
    own = (_COLUMNS.session == session, _COLUMNS.session != "", _COLUMNS.pin == "")
    last = (_COLUMNS.ordinal.desc(), _COLUMNS.opened_at.desc(), _COLUMNS.id.desc())
    return select(*_SAID).where(*own).order_by(*last).limit(1)
