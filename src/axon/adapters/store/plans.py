"""Plans in a database. Knows no tenant."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from axon.adapters.store import limits, schema
from axon.adapters.store.database import Database
from axon.adapters.store.failures import known_ids_only, translated
from axon.domain.tenant import Plan

_COLUMNS = schema.plans.c


class SqlPlans:
    """The ``plans`` table."""

    def __init__(self, database: Database) -> None:
        self._database = database
        insert: Any = sqlite.insert if database.dialect == "sqlite" else postgresql.insert
        made = insert(schema.plans)
        # Of two who make the same plan at once the later one's limits stand.
        self._upsert = made.on_conflict_do_update(index_elements=[_COLUMNS.name], set_={"limits": made.excluded.limits})

    async def put(self, plan: Plan) -> bool:
        text = limits.encode(plan.limits)
        with translated():
            async with self._database.begin() as connection:
                anew = update(schema.plans).where(_COLUMNS.name == plan.name).values(limits=text)
                if (await connection.execute(anew)).rowcount:
                    return False
                await connection.execute(self._upsert, {"name": plan.name, "limits": text})
        return True

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

    async def remove(self, name: str) -> bool:
        num_removed = 0
        with known_ids_only():
            async with self._database.begin() as connection:
                gone = await connection.execute(delete(schema.plans).where(_COLUMNS.name == name))
                num_removed = gone.rowcount
        return num_removed > 0


def _plan(row: Row[Any]) -> Plan:
    return Plan(name=row.name, limits=limits.decode(row.limits, f"plan {row.name}"))
