"""The registry in a database: its records as JSON, the trail of their changes, and the counter of them.

A change updates the counter first. That locks it, so changes come one after the other, and what a transaction reads
after that cannot change before it ends.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, delete, func, insert, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import translated
from axon.domain.registry import record as records
from axon.domain.registry.change import Change
from axon.domain.registry.record import Edit, Record, kept, name_of, row_of, snapshot_of
from axon.domain.registry.snapshot import Snapshot

_RECORDS, _CHANGES, _REVISION = schema.registry_records, schema.registry_changes, schema.registry_revision
# One statement, so that the records are those of the revision that comes with them.
_SNAPSHOT = select(_REVISION.c.revision.label("at"), *_RECORDS.c).select_from(_REVISION.outerjoin(_RECORDS, true()))


_MAX_PAGE_CHARS = 4_000_000
"""Changes of more characters than this are read in several pages: each has its record twice."""


class _Mismatch(Exception):
    """Rolls back a change whose comparison failed."""


class SqlRegistry:
    """The tables ``registry_records``, ``registry_changes`` and ``registry_revision``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def snapshot(self) -> Snapshot:
        with translated():
            async with self._database.connect() as connection:
                rows = (await connection.execute(_SNAPSHOT)).all()
        return snapshot_of(rows[0].at, [_stored(row) for row in rows if row.kind is not None])

    async def revision(self) -> int:
        with translated():
            async with self._database.connect() as connection:
                found = (await connection.execute(select(_REVISION.c.revision))).scalar_one()
        return int(found)

    async def write(
        self, old: Record | None, new: Record | None, *, actor: str, at: float, over: int | None = None
    ) -> int | None:
        return await self.write_all([(old, new)], actor=actor, at=at, over=over)

    async def write_all(self, edits: Sequence[Edit], *, actor: str, at: float, over: int | None = None) -> int | None:
        with translated():
            try:
                async with self._database.begin() as connection:
                    revision = await _counted(connection, len(edits))
                    before = revision - len(edits)
                    if over is not None and before != over:
                        raise _Mismatch
                    for number, edit in enumerate(edits, start=before + 1):
                        await _write(connection, edit, Change(number=number, at=at, actor=actor, **_what(edit)))
            except _Mismatch:
                return None
        return revision

    async def changes(self, *, after: int, limit: int, kind: str = "", name: str = "") -> Sequence[Change]:
        number = _CHANGES.c.number
        wanted = number > after
        if kind:
            wanted = and_(wanted, _CHANGES.c.kind == kind, _CHANGES.c.name == name)
        length = func.length(_CHANGES.c.before) + func.length(_CHANGES.c.after)
        sizes = select(number, length).where(wanted).order_by(number).limit(limit)
        with translated():
            async with self._database.connect() as connection:
                found = (await connection.execute(sizes)).all()
                last = _last_of_page([(int(num), int(chars)) for num, chars in found])
                page = select(_CHANGES).where(wanted, number <= last).order_by(number)
                rows = (await connection.execute(page)).all()
        return [_change(row) for row in rows]

    async def removals(self, *, kind: str, name: str) -> Sequence[Change]:
        columns = _CHANGES.c
        of_it = and_(columns.kind == kind, columns.name == name, columns.action == "remove")
        with translated():
            async with self._database.connect() as connection:
                rows = (await connection.execute(select(_CHANGES).where(of_it).order_by(columns.number))).all()
        return [_change(row) for row in rows]


async def _counted(connection: AsyncConnection, num: int) -> int:
    """Raises the counter, which stays locked until the transaction ends; returns it."""
    raised = update(_REVISION).values(revision=_REVISION.c.revision + num).returning(_REVISION.c.revision)
    return int((await connection.execute(raised)).scalar_one())


async def _write(connection: AsyncConnection, edit: Edit, change: Change) -> None:
    old, new = edit
    where = and_(_RECORDS.c.kind == change.kind, _RECORDS.c.name == change.name)
    stored = (await connection.execute(select(_RECORDS.c.revision, _RECORDS.c.body).where(where))).one_or_none()
    if not records.is_unchanged(old, stored.revision if stored else None):
        raise _Mismatch
    before = stored.body if stored else ""
    after = row_of(replace(new, revision=change.number)).body if new else ""
    if stored and new:
        after = kept(before, after)
    await _put(connection, where, change, after, is_stored=stored is not None)
    told = replace(change, before=before, after=after)
    await connection.execute(insert(_CHANGES).values(_columns(told)))


async def _put(
    connection: AsyncConnection, where: ColumnElement[bool], change: Change, body: str, *, is_stored: bool
) -> None:
    values = {"kind": change.kind, "name": change.name, "revision": change.number, "body": body}
    if not body:
        await connection.execute(delete(_RECORDS).where(where))
    elif is_stored:
        await connection.execute(update(_RECORDS).where(where).values(values))
    else:
        await connection.execute(insert(_RECORDS).values(values))


def _last_of_page(sizes: Sequence[tuple[int, int]]) -> int:
    """The number of the last change that fits into a page; the first one always does."""
    last, num_chars = 0, 0
    for number, length in sizes:
        num_chars += length
        if last and num_chars > _MAX_PAGE_CHARS:
            break
        last = number
    return last


def _what(edit: Edit) -> dict[str, str]:
    """Kind, name and action of a change."""
    old, new = edit
    known = new or old
    assert known is not None, "a change has a record before it or after it"
    kind, name = records.kind_of(known), name_of(known)
    assert old is None or (records.kind_of(old), name_of(old)) == (kind, name), "a change keeps kind and name"
    return {"kind": kind, "name": name, "action": "add" if old is None else "remove" if new is None else "change"}


def _columns(change: Change) -> dict[str, Any]:
    plain = {name: getattr(change, name) for name in ("number", "actor", "kind", "name", "action", "before", "after")}
    return {**plain, "made_at": change.at}


def _change(row: Row[Any]) -> Change:
    return Change(
        number=row.number,
        at=row.made_at,
        actor=row.actor,
        kind=row.kind,
        name=row.name,
        action=row.action,
        before=row.before,
        after=row.after,
    )


def _stored(row: Row[Any]) -> records.Row:
    return records.Row(kind=row.kind, name=row.name, revision=row.revision, body=row.body)
