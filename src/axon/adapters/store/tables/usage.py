"""Sums of usage in a database: of turns and of replicas' time. Reads columns only, so purged turns count too."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Integer, Row, Select, cast, func, select

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only
from axon.adapters.store.tables.replica_uses import SqlReplicaUses
from axon.domain.billing.cost import NANOS, Amount
from axon.domain.billing.replica_use import ReplicaSum, ReplicaUse
from axon.domain.billing.usage import Usage
from axon.domain.billing.usage_sum import UsageSum

_COLUMNS = schema.turns.c
_DAY_S = 86400
_NOTHING = Usage(prompt_tokens=0, cached_tokens=0, output_tokens=0)
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
        self._replicas = SqlReplicaUses(database)

    async def add_replicas(self, uses: Sequence[ReplicaUse]) -> None:
        await self._replicas.put(uses)

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
        found = _merged([_sum(row) for row in rows])
        replicas = await self._replicas.sums(since=since, until=until, tenant=tenant, by_day=by_day, by_model=by_model)
        return _with_replicas(found, {(who, _shown(day), model): each for (who, day, model), each in replicas.items()})

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
        day=_shown(day),
        model=getattr(row, "deployment", ""),
        num_turns=row.num_turns,
        usage=Usage(prompt_tokens=row.prompt_tokens, cached_tokens=row.cached_tokens, output_tokens=row.output_tokens),
        costs=(Amount.of(int(row.units) * NANOS + int(row.nanos), row.currency),) if row.currency else (),
    )


def _shown(day: int | None) -> str:
    """A day since 1970 as it is shown; empty for none."""
    return "" if day is None else datetime.fromtimestamp(day * _DAY_S, UTC).strftime("%Y-%m-%d")


def _with_replicas(sums: Sequence[UsageSum], replicas: Mapping[tuple[str, str, str], ReplicaSum]) -> Sequence[UsageSum]:
    """The sums with the replicas' time of the same tenant, day and model; one that has no turns gets a sum of its
    own."""
    known = {each.of: each for each in sums}
    for of, each in replicas.items():
        tenant, day, model = of
        own = known.get(of) or UsageSum(tenant=tenant, day=day, model=model, num_turns=0, usage=_NOTHING)
        known[of] = replace(own, replicas=each)
    return [known[of] for of in sorted(known)] if replicas else sums


def _merged(sums: Sequence[UsageSum]) -> Sequence[UsageSum]:
    """Adds up the sums of one tenant, day and model, which come one for each currency, next to each other."""
    merged: list[UsageSum] = []
    for each in sums:
        if merged and merged[-1].of == each.of:
            merged[-1] = merged[-1].plus(each)
        else:
            merged.append(each)
    return merged
