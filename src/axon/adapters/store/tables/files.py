"""Records of files in a database. Knows no file's bytes."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only, translated
from axon.domain.file import File, Purpose

_FILES = schema.files
_COLUMNS = _FILES.c


class SqlFiles:
    """The ``files`` table."""

    def __init__(self, database: Database) -> None:
        self._database = database
        insert = (sqlite.insert if database.dialect == "sqlite" else postgresql.insert)(_FILES)
        changed = {name: insert.excluded[name] for name in ("filename", "bytes", "created_at", "expires_at")}
        self._put = insert.on_conflict_do_update(index_elements=["id"], set_=changed)

    async def put(self, file: File) -> None:
        with translated():
            async with self._database.begin() as connection:
                await connection.execute(self._put, file_row(file))

    async def get(self, file_id: str) -> File | None:
        row = None
        with known_ids_only():
            async with self._database.connect() as connection:
                row = (await connection.execute(select(_FILES).where(_COLUMNS.id == file_id))).one_or_none()
        return None if row is None else _file(row)

    async def page(
        self, tenant: str, *, after: str, limit: int, newest_first: bool = True, purpose: Purpose | None = None
    ) -> Sequence[File]:
        query = select(_FILES).where(_COLUMNS.tenant == tenant)
        if after:
            query = query.where(_COLUMNS.id < after if newest_first else _COLUMNS.id > after)
        if purpose is not None:
            query = query.where(_COLUMNS.purpose == str(purpose))
        query = query.order_by(_COLUMNS.id.desc() if newest_first else _COLUMNS.id).limit(limit)
        rows: Sequence[Row[Any]] = ()
        with known_ids_only():
            async with self._database.connect() as connection:
                rows = (await connection.execute(query)).all()
        return [_file(row) for row in rows]

    async def remove(self, file_id: str) -> bool:
        with translated():
            async with self._database.begin() as connection:
                return (await connection.execute(delete(_FILES).where(_COLUMNS.id == file_id))).rowcount > 0

    async def expired(self, *, at: float, limit: int) -> Sequence[str]:
        query = select(_COLUMNS.id).where(_COLUMNS.expires_at <= at).limit(limit)
        with translated():
            async with self._database.connect() as connection:
                return (await connection.execute(query)).scalars().all()

    async def unknown(self, file_ids: Sequence[str]) -> frozenset[str]:
        query = select(_COLUMNS.id).where(_COLUMNS.id.in_(list(file_ids)))
        with translated():
            async with self._database.connect() as connection:
                known = (await connection.execute(query)).scalars().all()
        return frozenset(file_ids) - frozenset(known)


def file_row(file: File) -> dict[str, object]:
    """A file as a row of the table."""
    return {
        "id": file.id,
        "tenant": file.tenant,
        "purpose": str(file.purpose),
        "filename": file.filename,
        "bytes": file.num_bytes,
        "created_at": file.created_at,
        "expires_at": file.expires_at,
    }


def _file(row: Row[Any]) -> File:
    return File(
        id=row.id,
        tenant=row.tenant,
        purpose=Purpose(row.purpose),
        filename=row.filename,
        num_bytes=row.bytes,
        created_at=row.created_at,
        expires_at=row.expires_at,
    )
