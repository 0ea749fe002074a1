"""Batches, their leases and the results of their lines in a database. Knows no file and no model.

A result's key is its batch and line, and a second one for a line is dropped: however many runners answer a line, it has
one result.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Row, Select, bindparam, delete, func, literal, select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only, translated
from axon.adapters.store.tables.files import file_row
from axon.domain.batch import Batch, Result
from axon.domain.file import File
from axon.errors import DependencyDown

_BATCHES, _RESULTS = schema.batches, schema.batch_results
_OPEN = _BATCHES.c.ended == False  # noqa: E712
_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:tenant, 0))")
"""Has the transactions that add a batch of one tenant follow each other."""
_encode = msgspec.msgpack.encode
_decoder = msgspec.msgpack.Decoder(Batch)


class SqlBatches:
    """The ``batches`` and ``batch_results`` tables."""

    def __init__(self, database: Database) -> None:
        self._database = database
        insert: Any = sqlite.insert if database.dialect == "sqlite" else postgresql.insert
        self._put_result = insert(_RESULTS).on_conflict_do_nothing()

    async def add(self, batch: Batch, *, max_active: int) -> bool:
        active = _count(_BATCHES.c.tenant == batch.tenant, _OPEN).scalar_subquery()
        row = _row(batch)
        values = select(*(literal(value, _BATCHES.c[name].type) for name, value in row.items()))
        insert = _BATCHES.insert().from_select(list(row), values.where(active < max_active)).returning(_BATCHES.c.id)
        with translated():
            async with self._database.begin() as connection:
                if self._database.dialect == "postgresql":  # SQLite has one writer at a time
                    await connection.execute(_LOCK, {"tenant": f"batches/{batch.tenant}"})
                return (await connection.execute(insert)).first() is not None

    async def get(self, batch_id: str) -> Batch | None:
        found = await self._read(select(_BATCHES).where(_BATCHES.c.id == batch_id))
        return _batch(found[0]) if found else None

    async def page(self, tenant: str, *, after: str, limit: int) -> Sequence[Batch]:
        query = select(_BATCHES).where(_BATCHES.c.tenant == tenant)
        if after:
            query = query.where(_BATCHES.c.id < after)
        return [_batch(row) for row in await self._read(query.order_by(_BATCHES.c.id.desc()).limit(limit))]

    async def change(self, old: Batch, new: Batch, *, files: Sequence[File] = ()) -> bool:
        own = update(_BATCHES).where(_BATCHES.c.id == old.id, _BATCHES.c.revision == old.revision)
        values = {"ended": new.state.terminal, "revision": new.revision, "body": _encode(new)}
        with translated():
            async with self._database.begin() as connection:
                is_changed = (await connection.execute(own.values(values))).rowcount > 0
                if is_changed and files:
                    await connection.execute(schema.files.insert(), [file_row(file) for file in files])
        return is_changed

    async def active(self, tenant: str) -> int:
        return int((await self._read(_count(_BATCHES.c.tenant == tenant, _OPEN)))[0][0])

    async def users(self, file_id: str) -> Sequence[str]:
        query = select(_BATCHES.c.id).where(_OPEN, _BATCHES.c.input_file == file_id)
        return [row.id for row in await self._read(query)]

    async def take(self, holder: str, *, now: float, until: float, limit: int) -> Sequence[Batch]:
        taken = []
        for row in await self._read(_FAIREST, {"now": now, "limit": limit}):
            own = update(_BATCHES).where(_BATCHES.c.id == row.id, *_free(now))
            if await self._write(own.values(holder=holder, held_until=until)):
                taken.append(await self.get(row.id))
        return [each for each in taken if each is not None]

    async def keep(self, batch_id: str, holder: str, *, until: float) -> Batch | None:
        own = update(_BATCHES).where(_BATCHES.c.id == batch_id, _BATCHES.c.holder == holder)
        return await self.get(batch_id) if await self._write(own.values(held_until=until)) else None

    async def release(self, batch_id: str, holder: str, *, until: float = 0.0) -> None:
        own = update(_BATCHES).where(_BATCHES.c.id == batch_id, _BATCHES.c.holder == holder)
        await self._write(own.values(holder="", held_until=until))

    async def put_results(self, batch_id: str, results: Sequence[Result]) -> None:
        if not results:
            return
        rows = [{"batch": batch_id, "line": each.line, "ok": each.ok, "body": each.body} for each in results]
        with translated():
            async with self._database.begin() as connection:
                await connection.execute(self._put_result, rows)

    async def done(self, batch_id: str) -> Mapping[int, bool]:
        query = select(_RESULTS.c.line, _RESULTS.c.ok).where(_RESULTS.c.batch == batch_id)
        return {row.line: bool(row.ok) for row in await self._read(query)}

    async def results(self, batch_id: str, *, after: int, limit: int, max_bytes: int) -> Sequence[Result]:
        past = (_RESULTS.c.batch == batch_id, _RESULTS.c.line > after)
        sizes = select(_RESULTS.c.line, func.length(_RESULTS.c.body).label("num")).where(*past)
        found = await self._read(sizes.order_by(_RESULTS.c.line).limit(limit))
        ends = itertools.accumulate(row.num for row in found)
        num = max(1, sum(end <= max_bytes for end in ends))
        rows = await self._read(select(_RESULTS).where(*past).order_by(_RESULTS.c.line).limit(num))
        return [Result(line=row.line, ok=bool(row.ok), body=row.body) for row in rows]

    async def count(self, batch_id: str) -> tuple[int, int]:
        query = (
            select(_RESULTS.c.ok, func.count().label("num")).where(_RESULTS.c.batch == batch_id).group_by(_RESULTS.c.ok)
        )
        counted = {bool(row.ok): int(row.num) for row in await self._read(query)}
        return counted.get(True, 0), counted.get(False, 0)

    async def purge(self, *, created_before: float) -> int:
        running = select(_BATCHES.c.id).where(_OPEN)
        await self._write(delete(_RESULTS).where(_RESULTS.c.batch.not_in(running)))
        return await self._write(delete(_BATCHES).where(~_OPEN, _BATCHES.c.created_at < created_before))

    async def _read(self, query: Select[Any], parameters: Mapping[str, Any] | None = None) -> Sequence[Row[Any]]:
        rows: Sequence[Row[Any]] = ()
        with known_ids_only():
            async with self._database.connect() as connection:
                rows = (await connection.execute(query, parameters)).all()
        return rows

    async def _write(self, statement: Any) -> int:
        """Runs one statement in a transaction; returns the number of rows that it changed."""
        with translated():
            async with self._database.begin() as connection:
                return int((await connection.execute(statement)).rowcount)


def _free(now: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Conditions of a batch that has not ended and that nobody holds ``now``, a time or a parameter for one."""
    return _OPEN, _BATCHES.c.held_until < now


def _fairest() -> Select[Any]:
    """Ids of ``limit`` batches that are free ``now``: first those before which their tenants have the fewest, held or
    free."""
    held, now = _BATCHES.alias(), bindparam("now", type_=_BATCHES.c.held_until.type)
    is_held = (held.c.ended == False, held.c.holder != "", held.c.held_until >= now)  # noqa: E712
    num_held = select(held.c.tenant, func.count().label("num")).where(*is_held).group_by(held.c.tenant).subquery()
    turn = func.row_number().over(partition_by=_BATCHES.c.tenant, order_by=(_BATCHES.c.created_at, _BATCHES.c.id))
    own = (
        select(_BATCHES.c.id, _BATCHES.c.tenant, _BATCHES.c.created_at, turn.label("turn"))
        .where(*_free(now))
        .subquery()
    )
    place = own.c.turn + func.coalesce(num_held.c.num, 0)
    joined = own.outerjoin(num_held, own.c.tenant == num_held.c.tenant)
    return select(own.c.id).select_from(joined).order_by(place, own.c.created_at, own.c.id).limit(bindparam("limit"))


_FAIREST = _fairest()
"""Made once: every gateway asks it once a second, and to make it takes longer than to ask."""


def _count(*where: ColumnElement[bool]) -> Select[Any]:
    return select(func.count()).select_from(_BATCHES).where(*where)


def _row(batch: Batch) -> dict[str, Any]:
    return {
        "id": batch.id,
        "tenant": batch.tenant,
        "input_file": batch.input_file_id,
        "ended": batch.state.terminal,
        "created_at": batch.created_at,
        "revision": batch.revision,
        "body": _encode(batch),
    }


def _batch(row: Row[Any]) -> Batch:
    try:
        return _decoder.decode(row.body)
    except msgspec.DecodeError as error:
        raise DependencyDown(f"The record of batch {row.id} cannot be read.", code="record_unreadable") from error
