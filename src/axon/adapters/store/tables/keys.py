"""API keys in a database. Holds digests only: no secret ever comes here."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, Select, bindparam, case, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only, translated
from axon.adapters.store.tables import audit, limits
from axon.adapters.store.tables.tenants import tenant_of
from axon.domain.audit import AuditEntry
from axon.domain.tenants.access import Access
from axon.domain.tenants.key import Key, Scope
from axon.domain.tenants.tenant import DEFAULT_PLAN, Plan, Tenant
from axon.errors import Conflict

_COLUMNS = schema.keys.c
_TENANTS, _PLANS = schema.tenants, schema.plans
_OWN = [column.label(f"key_{column.name}") for column in _COLUMNS]
_ACCESS: Select[Any] = (
    select(*_OWN, _TENANTS, _PLANS.c.name.label("plan_name"), _PLANS.c.limits.label("plan_limits"))
    .outerjoin_from(schema.keys, _TENANTS, _TENANTS.c.id == _COLUMNS.tenant)
    .outerjoin(_PLANS, _PLANS.c.name == func.coalesce(_TENANTS.c.plan, DEFAULT_PLAN))
)
_TOUCH = (
    update(schema.keys)
    .where(_COLUMNS.id == bindparam("key_id"))
    .where(or_(_COLUMNS.last_used_at.is_(None), _COLUMNS.last_used_at < bindparam("used_at")))
    .values(last_used_at=bindparam("used_at"))
)


class SqlKeys:
    """The ``keys`` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def access(self, key_id: str) -> Access | None:
        row = None
        with known_ids_only():
            async with self._database.connect() as connection:
                row = (await connection.execute(_ACCESS.where(_COLUMNS.id == key_id))).one_or_none()
        return None if row is None else _access(row)

    async def touch(self, used_at: Mapping[str, float]) -> None:
        # Sorted, so that two gateways that update the same keys cannot deadlock.
        rows = [{"key_id": key_id, "used_at": used_at[key_id]} for key_id in sorted(used_at)]
        with translated():
            async with self._database.begin() as connection:
                if rows:
                    await connection.execute(_TOUCH, rows)

    async def add(self, key: Key, *, entry: AuditEntry | None = None) -> None:
        with translated():
            try:
                async with self._database.begin() as connection:
                    await connection.execute(insert(schema.keys).values(_row(key)))
                    await audit.write(connection, entry)
            except IntegrityError as error:
                raise _exists(key) from error

    async def find(self, key_id: str) -> Key | None:
        query = select(*_OWN).where(_COLUMNS.id == key_id)
        row = None
        with known_ids_only():
            async with self._database.connect() as connection:
                row = (await connection.execute(query)).one_or_none()
        return None if row is None else _key(row)

    async def all(self, *, tenant: str | None = None) -> Sequence[Key]:
        query = select(*_OWN).order_by(_COLUMNS.created_at, _COLUMNS.id)
        rows: Sequence[Row[Any]] = ()
        with known_ids_only():
            async with self._database.connect() as connection:
                own = query if tenant is None else query.where(_COLUMNS.tenant == tenant)
                rows = (await connection.execute(own)).all()
        return [_key(row) for row in rows]

    async def revoke(self, key_id: str, *, at: float, entry: AuditEntry | None = None) -> bool:
        valid = update(schema.keys).where(_COLUMNS.id == key_id).where(_COLUMNS.revoked_at.is_(None))
        is_known = False
        with known_ids_only():
            async with self._database.begin() as connection:
                if (await connection.execute(valid.values(revoked_at=at))).rowcount:
                    await audit.write(connection, entry)
                found = await connection.execute(select(_COLUMNS.id).where(_COLUMNS.id == key_id))
                is_known = found.one_or_none() is not None
        return is_known

    async def revoked(self, key_ids: Collection[str]) -> frozenset[str]:
        query = select(_COLUMNS.id).where(_COLUMNS.id.in_(key_ids)).where(_COLUMNS.revoked_at.is_not(None))
        with translated():
            async with self._database.connect() as connection:
                return frozenset((await connection.execute(query)).scalars())

    async def rotate(self, new: Key, *, until: float, entry: AuditEntry | None = None) -> bool:
        sooner = case((_COLUMNS.expires_at < until, _COLUMNS.expires_at), else_=until)
        old = update(schema.keys).where(_COLUMNS.id == new.previous)
        with translated():
            try:
                async with self._database.begin() as connection:
                    if not (await connection.execute(old.values(expires_at=sooner))).rowcount:
                        return False
                    await connection.execute(insert(schema.keys).values(_row(new)))
                    await audit.write(connection, entry)
            except IntegrityError as error:
                raise _exists(new) from error
        return True


def _row(key: Key) -> dict[str, Any]:
    plain = {column.name: getattr(key, column.name) for column in _COLUMNS}
    return {**plain, "scopes": " ".join(sorted(key.scopes))}


def _exists(key: Key) -> Conflict:
    return Conflict(f"There is a key {key.id} already.", code="key_exists")


def _key(row: Row[Any]) -> Key:
    plain = {column.name: row._mapping[f"key_{column.name}"] for column in _COLUMNS}
    known = {str(scope) for scope in Scope}  # scopes of a later release are ignored
    return Key(**{**plain, "scopes": frozenset(Scope(each) for each in plain["scopes"].split() if each in known)})


def _access(row: Row[Any]) -> Access:
    key = _key(row)
    tenant = Tenant(id=key.tenant) if row.id is None else tenant_of(row)
    if row.plan_name is None:
        return Access(key=key, tenant=tenant)
    plan = Plan(name=row.plan_name, limits=limits.decode(row.plan_limits, f"plan {row.plan_name}"))
    return Access(key=key, tenant=tenant, plan=plan)
