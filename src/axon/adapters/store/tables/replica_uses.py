"""Time of replicas that tenants pay for, in a database. Knows no turn."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Integer, Row, Select, cast, func, select
from sqlalchemy.dialects import postgresql, sqlite

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only, translated
from axon.domain.billing.replica_use import ReplicaSum, ReplicaUse, UseGroup, UseKind, summed

_COLUMNS = schema.replica_uses.c
_DAY_S = 86400

Of = tuple[str, int | None, str]
"""Tenant, day since 1970 and deployment of a sum; None and empty where it is over all of them."""


class SqlReplicaUses:
    """The ``replica_uses`` table."""

    def __init__(self, database: Database) -> None:
        self._database = database
        insert = sqlite.insert if database.dialect == "sqlite" else postgresql.insert
        statement = insert(schema.replica_uses)
        # Whoever pays and the price stay as they were when it began; an earlier leader's shorter time is no news.
        self._put = statement.on_conflict_do_update(
            index_elements=["id"],
            set_={"seconds": statement.excluded.seconds},
            where=_COLUMNS.seconds < statement.excluded.seconds,
        )

    async def put(self, uses: Sequence[ReplicaUse]) -> None:
        """Adds uses; one that is there has its seconds raised, and nothing else changed."""
        if not uses:
            return
        with translated():
            async with self._database.begin() as connection:
                await connection.execute(self._put, [_values(use) for use in uses])

    async def sums(
        self, *, since: float, until: float, tenant: str | None, by_day: bool, by_model: bool
    ) -> Mapping[Of, ReplicaSum]:
        """Sums over the uses that began in this time."""
        rows: Sequence[Row[Any]] = ()
        with known_ids_only():
            async with self._database.connect() as connection:
                query = self._query(since, until, tenant, by_day=by_day, by_model=by_model)
                rows = (await connection.execute(query)).all()
        return {of: summed(map(_group, parts)) for of, parts in groupby(rows, _of)}

    def _query(self, since: float, until: float, tenant: str | None, *, by_day: bool, by_model: bool) -> Select[Any]:
        parts = [*([_day(self._database.dialect)] if by_day else []), *([_COLUMNS.deployment] if by_model else [])]
        of = [_COLUMNS.tenant, *parts]
        groups = [*of, _COLUMNS.kind, _COLUMNS.price_nanos, _COLUMNS.currency]
        query = select(*groups, func.count().label("num"), func.sum(_COLUMNS.seconds).label("total_s"))
        query = query.where(_COLUMNS.began_at >= since, _COLUMNS.began_at < until)
        if tenant is not None:
            query = query.where(_COLUMNS.tenant == tenant)
        return query.group_by(*groups).order_by(*groups)


def _day(dialect: str) -> ColumnElement[int]:
    days = _COLUMNS.began_at / _DAY_S
    return cast(days if dialect == "sqlite" else func.floor(days), Integer).label("day")


def _of(row: Row[Any]) -> Of:
    return row.tenant, getattr(row, "day", None), getattr(row, "deployment", "")


def _group(row: Row[Any]) -> UseGroup:
    return UseGroup(
        kind=UseKind(row.kind), num=row.num, seconds=row.total_s, price_nanos=row.price_nanos, currency=row.currency
    )


def _values(use: ReplicaUse) -> dict[str, object]:
    names = ("id", "tenant", "deployment", "version", "pool", "seconds", "price_nanos", "currency")
    return {**{name: getattr(use, name) for name in names}, "kind": str(use.kind), "began_at": use.at}
