"""The audit trail in a database: the table ``audit``, and the registry's own trail, read as one. Knows no record.

Whoever changes a record writes its entry in the same transaction, by ``write``.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Row, String, Table, and_, func, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only, translated
from axon.domain.audit import AuditEntry, AuditPage

_OWN, _REGISTRY = schema.audit, schema.registry_changes
_MAX_PAGE_CHARS = 4_000_000
"""Entries of more characters than this come in several pages: each has its record twice."""
_MAX_DIGITS = 18


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """An entry's place in the order of the trail. Of two entries of one moment, the registry's counts as the older."""

    at: float
    is_own: bool
    number: int
    """The number of a change of the registry; 0 for an entry of our own."""
    id: str
    """The id of an entry of our own; empty for a change of the registry."""


async def write(connection: AsyncConnection, entry: AuditEntry | None) -> None:
    """Writes an entry in the transaction of the change that it tells of."""
    if entry is not None:
        plain = asdict(entry)
        at = plain.pop("at")
        await connection.execute(insert(_OWN).values({**plain, "made_at": at}))


class SqlAudit:
    """The tables ``audit`` and ``registry_changes``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, entry: AuditEntry) -> None:
        with translated():
            async with self._database.begin() as connection:
                await write(connection, entry)

    async def page(self, *, limit: int, after: str = "", kind: str = "", text: str = "") -> AuditPage | None:
        found: AuditPage | None = None if after else AuditPage(entries=(), has_more=False)
        with known_ids_only():  # a text that the database cannot represent is in no entry
            async with self._database.connect() as connection:
                past = await _place_of_id(connection, after) if after else None
                if after and past is None:
                    return None
                heads: list[tuple[_Place, int]] = []
                for table in (_OWN, _REGISTRY):
                    heads += await _heads(connection, table, _rules(table, past, kind, text), limit + 1)
                heads.sort(reverse=True)
                chosen = _fitting(heads[:limit])
                entries = await _entries(connection, chosen)
                found = AuditPage(entries=entries, has_more=len(heads) > len(chosen))
        return found


def _mark(table: Table) -> Column[Any]:
    """The column that identifies a row of the table."""
    return table.c.id if table is _OWN else table.c.number


def _place(table: Table, at: float, mark: int | str) -> _Place:
    is_own = table is _OWN
    return _Place(at=at, is_own=is_own, number=0 if is_own else int(mark), id=str(mark) if is_own else "")


async def _place_of_id(connection: AsyncConnection, entry_id: str) -> _Place | None:
    """Where the entry of an id stands; None if there is none."""
    is_number = entry_id.isascii() and entry_id.isdigit() and len(entry_id) <= _MAX_DIGITS
    table, mark = (_REGISTRY, int(entry_id)) if is_number else (_OWN, entry_id)
    at = (await connection.execute(select(table.c.made_at).where(_mark(table) == mark))).scalar_one_or_none()
    return None if at is None else _place(table, at, mark)


def _rules(table: Table, past: _Place | None, kind: str, text: str) -> list[ColumnElement[bool]]:
    """The conditions on a table's rows: they are older than a place, and match."""
    columns, rules = table.c, list[ColumnElement[bool]]()
    if past is not None and past.is_own == (table is _OWN):
        older = _mark(table) < (past.id if past.is_own else past.number)
        rules.append(or_(columns.made_at < past.at, and_(columns.made_at == past.at, older)))
    elif past is not None:
        rules.append(columns.made_at <= past.at if past.is_own else columns.made_at < past.at)
    if kind:
        rules.append(columns.kind == kind)
    if text:
        places = (columns.name, columns.actor, columns.kind, columns.action, columns.before, columns.after)
        small = [func.lower(each, type_=String).contains(text.lower(), autoescape=True) for each in places]
        as_typed = [each.contains(text, autoescape=True) for each in places]  # SQLite lowers ASCII alone
        rules.append(or_(*small, *as_typed))
    return rules


async def _heads(
    connection: AsyncConnection, table: Table, rules: Sequence[ColumnElement[bool]], limit: int
) -> list[tuple[_Place, int]]:
    """The places of the newest entries of a table, each with its number of characters."""
    columns, mark = table.c, _mark(table)
    num_chars = func.length(columns.before) + func.length(columns.after)
    query = select(columns.made_at, mark, num_chars).where(*rules).order_by(columns.made_at.desc(), mark.desc())
    rows = (await connection.execute(query.limit(limit))).all()
    return [(_place(table, at, each), int(chars)) for at, each, chars in rows]


def _fitting(heads: Sequence[tuple[_Place, int]]) -> list[_Place]:
    """The places that fit into a page; the first one always does."""
    chosen: list[_Place] = []
    num_chars = 0
    for place, length in heads:
        num_chars += length
        if chosen and num_chars > _MAX_PAGE_CHARS:
            break
        chosen.append(place)
    return chosen


async def _entries(connection: AsyncConnection, places: Sequence[_Place]) -> list[AuditEntry]:
    """The entries of these places, in their order."""
    found: dict[_Place, AuditEntry] = {}
    for table in (_OWN, _REGISTRY):
        marks = [place.id or place.number for place in places if place.is_own == (table is _OWN)]
        if marks:
            for row in (await connection.execute(select(table).where(_mark(table).in_(marks)))).all():
                mark = row._mapping[_mark(table)]
                found[_place(table, row.made_at, mark)] = _entry(row, str(mark))
    return [found[place] for place in places if place in found]


def _entry(row: Row[Any], entry_id: str) -> AuditEntry:
    return AuditEntry(
        id=entry_id,
        at=row.made_at,
        actor=row.actor,
        kind=row.kind,
        name=row.name,
        action=row.action,
        before=row.before,
        after=row.after,
    )
