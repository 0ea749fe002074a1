"""Tenants in a database. Numbers each one (``place``) when it is added; knows no key."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, ScalarSelect, and_, case, delete, exists, func, insert, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only, translated
from axon.adapters.store.tables import audit, limits
from axon.domain.audit import AuditEntry
from axon.domain.tenants.tenant import Tenant
from axon.errors import Conflict, DependencyDown

_COLUMNS = schema.tenants.c
_CHANGEABLE = ("name", "plan", "limits", "suspended_at")
_TRIES = 100
"""Tries to insert; each failure means that another process took the number first."""


class SqlTenants:
    """The ``tenants`` table."""

    def __init__(self, database: Database) -> None:
        self._database = database
        insert_once: Any = sqlite.insert if database.dialect == "sqlite" else postgresql.insert
        self._note_removed = insert_once(schema.removed_tenants).on_conflict_do_nothing()

    async def add(self, tenant: Tenant, *, entry: AuditEntry | None = None) -> Tenant:
        for _ in range(_TRIES):
            with translated():
                try:
                    return await self._insert(tenant, entry)
                except IntegrityError as error:
                    failure = error
            if await self.get(tenant.id) is not None:
                raise Conflict(f"There is a tenant {tenant.id} already.", code="tenant_exists", param="id") from failure
        raise DependencyDown("No place could be had for the tenant; too many are made at once.")

    async def get(self, tenant_id: str) -> Tenant | None:
        query = select(schema.tenants).where(_COLUMNS.id == tenant_id)
        row = None
        with known_ids_only():
            async with self._database.connect() as connection:
                row = (await connection.execute(query)).one_or_none()
        return None if row is None else tenant_of(row)

    async def all(self) -> Sequence[Tenant]:
        query = select(schema.tenants).order_by(_COLUMNS.created_at, _COLUMNS.id)
        with translated():
            async with self._database.connect() as connection:
                rows = (await connection.execute(query)).all()
        return [tenant_of(row) for row in rows]

    async def change(self, old: Tenant, new: Tenant, *, entry: AuditEntry | None = None) -> bool:
        before, after = _row(old), _row(new)
        unchanged = [_COLUMNS[name].is_not_distinct_from(before[name]) for name in _CHANGEABLE]
        change = update(schema.tenants).where(and_(_COLUMNS.id == old.id, *unchanged))
        with translated():
            async with self._database.begin() as connection:
                changed = await connection.execute(change.values({name: after[name] for name in _CHANGEABLE}))
                if changed.rowcount:
                    await audit.write(connection, entry)
                return changed.rowcount > 0

    async def remove(self, tenant_id: str, *, at: float, entry: AuditEntry | None = None) -> bool:
        num_removed = 0
        with known_ids_only():
            async with self._database.begin() as connection:
                gone = await connection.execute(delete(schema.tenants).where(_COLUMNS.id == tenant_id))
                if gone.rowcount:
                    await connection.execute(self._note_removed, {"id": tenant_id, "removed_at": at})
                    await audit.write(connection, entry)
            num_removed = gone.rowcount
        return num_removed > 0

    async def _insert(self, tenant: Tenant, entry: AuditEntry | None) -> Tenant:
        async with self._database.begin() as connection:
            made = insert(schema.tenants).values({**_row(tenant), "place": _free_place()}).returning(*_COLUMNS)
            row = (await connection.execute(made)).one()
            # After the insertion, which waits for a concurrent removal.
            removed = select(schema.removed_tenants).where(schema.removed_tenants.c.id == tenant.id)
            if (await connection.execute(removed)).one_or_none() is not None:
                raise Conflict(
                    f"There was a tenant {tenant.id}, and what it had is kept under this id; choose another one.",
                    code="tenant_removed",
                    param="id",
                )
            await audit.write(connection, entry)
            return tenant_of(row)


def _free_place() -> ScalarSelect[int]:
    """Query for the lowest free number."""
    taken, first, after = schema.tenants.alias("taken"), schema.tenants.alias("first"), schema.tenants.alias("after")
    next_free = (
        select(func.min(taken.c.place + 1)).where(~exists().where(after.c.place == taken.c.place + 1)).scalar_subquery()
    )
    return select(case((exists().where(first.c.place == 0), next_free), else_=literal(0))).scalar_subquery()


def _row(tenant: Tenant) -> dict[str, Any]:
    plain = {column.name: getattr(tenant, column.name) for column in _COLUMNS}
    return {**plain, "limits": limits.encode(tenant.limits)}


def tenant_of(row: Row[Any]) -> Tenant:
    """Reads a tenant from a row that includes its columns."""
    plain = {column.name: row._mapping[column] for column in _COLUMNS}
    return Tenant(**{**plain, "limits": limits.decode(plain["limits"], f"tenant {plain['id']}")})
