"""Plans in a database. Knows no tenant."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, and_, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only, translated
from axon.adapters.store.tables import audit, limits
from axon.domain.audit import AuditEntry
from axon.domain.tenants.tenant import Plan

_COLUMNS = schema.plans.c


class SqlPlans:
    """The ``plans`` table."""

    def __init__(self, database: Database) -> None:
        self._database = database
        insert: Any = sqlite.insert if database.dialect == "sqlite" else postgresql.insert
        self._insert = insert(schema.plans).on_conflict_do_nothing().returning(_COLUMNS.name)

    async def add(self, plan: Plan, *, entry: AuditEntry | None = None) -> bool:
        with translated():
            async with self._database.begin() as connection:
                made = await connection.execute(self._insert, {"name": plan.name, "limits": limits.encode(plan.limits)})
                is_new = made.one_or_none() is not None
                await audit.write(connection, entry if is_new else None)
                return is_new

    async def change(self, old: Plan, new: Plan, *, entry: AuditEntry | None = None) -> bool:
        as_it_was = and_(_COLUMNS.name == old.name, _COLUMNS.limits == limits.encode(old.limits))
        change = update(schema.plans).where(as_it_was).values(limits=limits.encode(new.limits))
        with translated():
            async with self._database.begin() as connection:
                is_changed = (await connection.execute(change)).rowcount > 0
                await audit.write(connection, entry if is_changed else None)
                return is_changed

    async def get(self, name: str) -> Plan | None:
        query = select(schema.plans).where(_COLUMNS.name == name)
        row = None
        with known_ids_only():
            async with self._database.connect() as connection:
                row = (await connection.execute(query)).one_or_none()
        return None if row is None else _plan(row)

    async def all(self) -> Sequence[Plan]:
        with translated():
            async with self._database.connect() as connection:
                rows = (await connection.execute(select(schema.plans).order_by(_COLUMNS.name))).all()
        return [_plan(row) for row in rows]

    async def remove(self, name: str, *, entry: AuditEntry | None = None) -> bool:
        num_removed = 0
        with known_ids_only():
            async with self._database.begin() as connection:
                gone = await connection.execute(delete(schema.plans).where(_COLUMNS.name == name))
                num_removed = gone.rowcount
                await audit.write(connection, entry if num_removed else None)
        return num_removed > 0


def _plan(row: Row[Any]) -> Plan:
    return Plan(name=row.name, limits=limits.decode(row.limits, f"plan {row.name}"))
