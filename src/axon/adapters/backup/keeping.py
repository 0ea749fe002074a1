"""What must not be undone when an older store is restored over a newer one: revoked keys, suspended and removed
tenants, erased texts. Knows no archive.

Whatever came after the backup is lost with the newer store. These are not: a key that was revoked because it leaked,
or a text that its owner had erased, must not come back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, Table, delete, func, insert, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from axon.adapters.backup.contents import tables_of
from axon.adapters.store import schema
from axon.domain.session.erasure import SESSION, TURN
from axon.runtime.error_text import first_line

T = TypeVar("T")
OVERLAP_S = 3600.0
"""Seconds before the backup from which on such changes are carried over: clocks of gateways differ."""
KINDS = {
    "keys": "ends of keys",
    "suspended": "suspensions of tenants",
    "removed": "removals of tenants",
    "tombstones": "erasures of texts",
}
"""What is carried over, in the words that are shown."""
_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Rows of the newer store that outlive it."""

    keys: Sequence[Any] = ()
    """Keys that end: their ids, when they were revoked, when they expire."""
    suspended: Sequence[Any] = ()
    removed: Sequence[Any] = ()
    tombstones: Sequence[Any] = ()
    unread: Sequence[str] = ()
    """The values of ``KINDS`` that could not be read."""
    reason: str = ""
    """Why they could not."""

    @property
    def num(self) -> int:
        return len(self.keys) + len(self.suspended) + len(self.removed) + len(self.tombstones)


def read_kept(connection: Connection, *, since: float) -> Kept:
    """Reads them from the newer store, at whatever migration it is; ``since`` is the time of the backup.

    Each kind is read by itself: of a damaged SQLite file, some may still be had. A damaged PostgreSQL raises.
    """
    found: dict[str, Sequence[Any]] = {}
    unread: list[str] = []
    reason = ""
    for kind, query in _queries(connection, since - OVERLAP_S).items():
        try:
            found[kind] = connection.execute(query).all()
        except SQLAlchemyError as error:
            if connection.dialect.name != "sqlite":
                raise
            unread.append(KINDS[kind])
            reason = first_line(error)
    return Kept(**found, unread=tuple(unread), reason=reason)


def nothing_kept(reason: str) -> Kept:
    """What is carried over from a store that cannot be read at all."""
    return Kept(unread=tuple(KINDS.values()), reason=reason)


def _queries(connection: Connection, since: float) -> dict[str, Select[Any]]:
    """A query for each kind that the store's tables know; in tables of an earlier release there was nothing of the
    others."""
    tables = {table.name: table.c for table in tables_of(connection)}
    queries: dict[str, Select[Any]] = {}
    if (keys := tables.get("keys")) is not None:
        ends = or_(keys.revoked_at.is_not(None), keys.expires_at.is_not(None))
        queries["keys"] = select(keys.id, keys.revoked_at, keys.expires_at).where(ends)
    if (tenants := tables.get("tenants")) is not None:
        queries["suspended"] = select(tenants.id, tenants.suspended_at).where(tenants.suspended_at.is_not(None))
    if (removed := tables.get("removed_tenants")) is not None:
        queries["removed"] = select(removed.id, removed.removed_at).where(removed.removed_at >= since)
    if (marks := tables.get("tombstones")) is not None:
        queries["tombstones"] = select(marks.id, marks.erased_at).where(marks.erased_at >= since)
    return queries


def apply_kept(connection: Connection, kept: Kept) -> None:
    """Makes them hold in the restored store."""
    keys, tenants = schema.keys, schema.tenants
    for key in kept.keys:
        values = {
            "revoked_at": func.coalesce(keys.c.revoked_at, key.revoked_at),
            "expires_at": func.coalesce(key.expires_at, keys.c.expires_at),
        }
        connection.execute(update(keys).where(keys.c.id == key.id).values(values))
    for tenant in kept.suspended:
        mine = update(tenants).where(tenants.c.id == tenant.id)
        connection.execute(mine.values(suspended_at=func.coalesce(tenants.c.suspended_at, tenant.suspended_at)))
    for some in _some(kept.removed):
        connection.execute(delete(tenants).where(tenants.c.id.in_([row.id for row in some])))
        _add(connection, schema.removed_tenants, some)
    for some in _some(kept.tombstones):
        _add(connection, schema.tombstones, some)
        _erase(connection, [row.id for row in some])


def _erase(connection: Connection, marks: Sequence[str]) -> None:
    """Erases what the tombstones name, as ``SqlTurns`` and ``SqlConversations`` do. A turn that has not ended is erased
    when its end is written."""
    turns, sessions = _named(TURN, marks), _named(SESSION, marks)
    _erase_turns(connection, schema.turns.c.id.in_(turns), {})
    _erase_turns(connection, schema.turns.c.session.in_(sessions), {"pin": ""})
    connection.execute(delete(schema.conversations).where(schema.conversations.c.id.in_(sessions)))
    for table in (schema.entries, schema.hidden_items):
        connection.execute(delete(table).where(table.c.conversation.in_(sessions)))


def _erase_turns(connection: Connection, which: ColumnElement[bool], more: dict[str, Any]) -> None:
    ended = (schema.turns.c.rank > 0, schema.turns.c.body.is_not(None))
    connection.execute(update(schema.turns).where(which, *ended).values(body=None, bytes=0, **more))


def _add(connection: Connection, table: Table, rows: Sequence[Any]) -> None:
    """Inserts rows that the table does not have yet."""
    ids = [row.id for row in rows]
    known = set(connection.scalars(select(table.c.id).where(table.c.id.in_(ids))))
    if new := [dict(row._mapping) for row in rows if row.id not in known]:
        connection.execute(insert(table), new)


def _named(prefix: str, marks: Sequence[str]) -> list[str]:
    return [mark.removeprefix(prefix) for mark in marks if mark.startswith(prefix)]


def _some(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    for first in range(0, len(rows), _AT_ONCE):
        yield rows[first : first + _AT_ONCE]
