"""Sums of usage in a database. Reads columns only, so purged turns count too."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Integer, Row, Select, cast, func, select

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only
from axon.domain.cost import NANOS, Amount
from axon.domain.usage import Usage
from axon.domain.usage_sum import UsageSum

_COLUMNS = schema.turns.c
_DAY_S = 86400
_COST = (
    func.sum(_COLUMNS.cost_nanos // NANOS).label("units"),
    func.sum(_COLUMNS.cost_nanos % NANOS).label("nanos"),
)
"""Whole units and the rest apart: SQLite's sums have 64 bits, which hold nine billion units in nanos."""


class SqlUsage:
    """Sums over the ``turns`` table."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._day = _day(database.dialect)

    async def sums(
        self,
        *,
        since: float,
        until: float,
        tenant: str | None = None,
        by_day: bool = False,
        by_model: bool = False,
    ) -> Sequence[UsageSum]:
        query = self.query(since, until, tenant, by_day=by_day, by_model=by_model)
        rows: Sequence[Row[Any]] = ()
        with known_ids_only():
            async with self._database.connect() as connection:
                rows = (await connection.execute(query)).all()
        return _merged([_sum(row) for row in rows])

    def query(
        self, since: float, until: float, tenant: str | None, *, by_day: bool = False, by_model: bool = False
    ) -> Select[Any]:
        """Sums tenant by tenant through the index; tenants are found by their keys, since every turn needed one."""
        sums = [func.sum(_COLUMNS[name]).label(name) for name in ("prompt_tokens", "cached_tokens", "output_tokens")]
        parts = [*([self._day] if by_day else []), *([_COLUMNS.deployment] if by_model else [])]
        groups = [_COLUMNS.tenant, *parts, _COLUMNS.currency]
        query = select(*groups, func.count().label("num_turns"), *sums, *_COST)
        query = query.where(_COLUMNS.ended_at >= since, _COLUMNS.ended_at < until)
        if tenant is not None:
            query = query.where(_COLUMNS.tenant == tenant)
        else:
            holders = select(schema.keys.c.tenant).distinct().subquery("holders")
            query = query.join_from(holders, schema.turns, holders.c.tenant == _COLUMNS.tenant)
        return query.group_by(*groups).order_by(*groups)


def _day(dialect: str) -> ColumnElement[int]:
    """Days since 1970 of the turn's end. PostgreSQL's cast rounds, so it needs floor(), which not every SQLite has."""
    days = _COLUMNS.ended_at / _DAY_S
    whole = days if dialect == "sqlite" else func.floor(days)
    return cast(whole, Integer).label("day")


def _sum(row: Row[Any]) -> UsageSum:
    day = getattr(row, "day", None)
    return UsageSum(
        tenant=row.tenant,
        day="" if day is None else datetime.fromtimestamp(day * _DAY_S, UTC).strftime("%Y-%m-%d"),
        model=getattr(row, "deployment", ""),
        num_turns=row.num_turns,
        usage=Usage(prompt_tokens=row.prompt_tokens, cached_tokens=row.cached_tokens, output_tokens=row.output_tokens),
        costs=(Amount.of(int(row.units) * NANOS + int(row.nanos), row.currency),) if row.currency else (),
    )


def _merged(sums: Sequence[UsageSum]) -> Sequence[UsageSum]:
    """Adds up the sums of one tenant, day and model, which come one for each currency, next to each other."""
    merged: list[UsageSum] = []
    for each in sums:
        if merged and merged[-1].of == each.of:
            merged[-1] = merged[-1].plus(each)
        else:
            merged.append(each)
    return merged
