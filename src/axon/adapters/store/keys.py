"""API keys in a database. Holds digests only: no secret ever comes here."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.failures import known_ids_only, translated
from axon.domain.key import Key
from axon.errors import Conflict

_COLUMNS = schema.keys.c


class SqlKeys:
    """The ``keys`` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: Key) -> None:
        values = {column.name: getattr(key, column.name) for column in _COLUMNS}
        with translated():
            try:
                async with self._database.begin() as connection:
                    await connection.execute(insert(schema.keys).values(values))
            except IntegrityError as error:
                raise Conflict(f"There is a key {key.id} already.", code="key_exists") from error

    async def find(self, key_id: str) -> Key | None:
        query = select(schema.keys).where(_COLUMNS.id == key_id)
        row = None
        with known_ids_only():
            async with self._database.connect() as connection:
                row = (await connection.execute(query)).one_or_none()
        return None if row is None else _key(row)

    async def all(self) -> Sequence[Key]:
        with translated():
            async with self._database.connect() as connection:
                query = select(schema.keys).order_by(_COLUMNS.created_at, _COLUMNS.id)
                rows = (await connection.execute(query)).all()
        return [_key(row) for row in rows]

    async def revoke(self, key_id: str, *, at: float) -> bool:
        change = update(schema.keys).where(_COLUMNS.id == key_id)
        num_revoked = 0
        with known_ids_only():
            async with self._database.begin() as connection:
                result = await connection.execute(change.values(revoked_at=func.coalesce(_COLUMNS.revoked_at, at)))
                num_revoked = result.rowcount
        return num_revoked > 0


def _key(row: Row[Any]) -> Key:
    return Key(**row._mapping)
