"""Conversations in a database: metadata, items added by hand, ids of removed items. Knows no turn's text."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, Select, Update, delete, exists, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only, translated
from axon.domain.content.item import Item
from axon.domain.session.conversation import Conversation, Entry, is_titled
from axon.errors import DependencyDown

_CONVERSATIONS, _ENTRIES, _HIDDEN = schema.conversations, schema.entries, schema.hidden_items
_encode = msgspec.msgpack.encode
_SCAN_ROWS = 500
"""Conversations that are read at a time to find a title."""


class SqlConversations:
    """The ``conversations`` table and those that belong to it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert: Any = sqlite.insert if database.dialect == "sqlite" else postgresql.insert
        self._size: Any = func.length if database.dialect == "sqlite" else func.octet_length

    async def put(self, conversation: Conversation, *, at: float, first: Entry | None = None) -> None:
        encoded, added = _encode(dict(conversation.metadata)), None if first is None else _row(conversation.id, first)
        row = {
            "id": conversation.id,
            "tenant": conversation.tenant,
            "created_at": conversation.created_at,
            "used_at": at,
            "metadata": encoded,
            "bytes": len(encoded) + (len(added["items"]) if added else 0),
            "num_items": len(first.items) if first else 0,
        }
        with translated():
            async with self._database.begin() as connection:
                await connection.execute(_CONVERSATIONS.insert().values(row))
                if added is not None:
                    await connection.execute(_ENTRIES.insert().values(added))

    async def change(self, conversation_id: str, metadata: Mapping[str, str], *, at: float) -> bool:
        encoded = _encode(dict(metadata))
        size = _CONVERSATIONS.c.bytes - self._size(_CONVERSATIONS.c.metadata) + len(encoded)
        own = update(_CONVERSATIONS).where(_CONVERSATIONS.c.id == conversation_id)
        with translated():
            async with self._database.begin() as connection:
                changed = await connection.execute(own.values(used_at=at, metadata=encoded, bytes=size))
                return changed.rowcount > 0

    async def get(self, conversation_id: str) -> Conversation | None:
        query = select(_CONVERSATIONS).where(_CONVERSATIONS.c.id == conversation_id)
        row = None
        with known_ids_only():
            async with self._database.connect() as connection:
                row = (await connection.execute(query)).one_or_none()
        return None if row is None else _conversation(row)

    async def page(
        self, tenant: str, *, limit: int, after: str = "", title: str = "", newest_first: bool = True
    ) -> Sequence[Conversation]:
        """Titles are compared here and not by the database, because metadata is one encoded column."""
        found: list[Conversation] = []
        while (num_rows := _SCAN_ROWS if title else limit - len(found)) > 0 and len(found) < limit:
            rows = await self._page_rows(_page(tenant, after, newest_first=newest_first).limit(num_rows))
            found += [each for each in map(_conversation, rows) if is_titled(each, title)]
            if len(rows) < num_rows:
                break
            after = rows[-1].id
        return found[:limit]

    async def _page_rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        rows: Sequence[Row[Any]] = ()
        with known_ids_only():
            async with self._database.connect() as connection:
                rows = (await connection.execute(query)).all()
        return rows

    async def add(self, conversation_id: str, entry: Entry) -> None:
        row = _row(conversation_id, entry)
        insert = self._insert(_ENTRIES).values(row).on_conflict_do_nothing().returning(_ENTRIES.c.id)
        with translated():
            async with self._database.begin() as connection:
                is_new = (await connection.execute(insert)).first() is not None  # a repeated removal counts once
                num_bytes, num_items = (len(row["items"]), len(entry.items)) if is_new else (0, 0)
                await connection.execute(_grown(conversation_id, num_bytes, num_items).values(used_at=entry.at))

    async def entries(self, conversation_id: str, *, limit: int) -> tuple[Sequence[Entry], frozenset[str]]:
        last = (_ENTRIES.c.ordinal.desc(), _ENTRIES.c.added_at.desc(), _ENTRIES.c.id.desc())
        added = select(_ENTRIES).where(_ENTRIES.c.conversation == conversation_id).order_by(*last).limit(limit)
        hidden = select(_HIDDEN.c.id).where(_HIDDEN.c.conversation == conversation_id)
        rows: Sequence[Row[Any]] = ()
        ids: Sequence[str] = ()
        with known_ids_only():
            async with self._database.connect() as connection:
                rows = (await connection.execute(added)).all()
                ids = (await connection.execute(hidden)).scalars().all()
        return [_entry(row) for row in reversed(rows)], frozenset(ids)

    async def remove_item(self, conversation_id: str, item_id: str) -> None:
        hide = self._insert(_HIDDEN).values(conversation=conversation_id, id=item_id).on_conflict_do_nothing()
        own = select(_ENTRIES).where(_ENTRIES.c.conversation == conversation_id).with_for_update()
        with translated():
            async with self._database.begin(erases=True) as connection:
                await connection.execute(hide)
                for row in (await connection.execute(own)).all():
                    entry = _entry(row)
                    left = [item for item in entry.items if item.id != item_id]
                    if len(left) < len(entry.items):  # erases its text as well
                        where = (_ENTRIES.c.conversation == conversation_id, _ENTRIES.c.id == entry.id)
                        encoded, num_gone = _encode(left), len(entry.items) - len(left)
                        await connection.execute(update(_ENTRIES).where(*where).values(items=encoded))
                        await connection.execute(_grown(conversation_id, len(encoded) - len(row.items), -num_gone))

    async def erase(self, conversation_ids: Sequence[str]) -> None:
        ids = list(conversation_ids)
        with translated():
            async with self._database.begin(erases=True) as connection:
                await connection.execute(delete(_ENTRIES).where(_ENTRIES.c.conversation.in_(ids)))
                await connection.execute(delete(_HIDDEN).where(_HIDDEN.c.conversation.in_(ids)))
                await connection.execute(delete(_CONVERSATIONS).where(_CONVERSATIONS.c.id.in_(ids)))

    async def idle(self, *, before: float, limit: int) -> Sequence[str]:
        turns = schema.turns.c
        goes_on = exists().where(turns.session == _CONVERSATIONS.c.id, turns.opened_at >= before)
        query = select(_CONVERSATIONS.c.id).where(_CONVERSATIONS.c.used_at < before, ~goes_on).limit(limit)
        with translated():
            async with self._database.connect() as connection:
                return (await connection.execute(query)).scalars().all()


def _page(tenant: str, after: str, *, newest_first: bool) -> Select[Any]:
    """Query for a tenant's conversations past an id."""
    own, order = select(_CONVERSATIONS).where(_CONVERSATIONS.c.tenant == tenant), _CONVERSATIONS.c.id
    if after:
        own = own.where(order < after if newest_first else order > after)
    return own.order_by(order.desc() if newest_first else order)


def _grown(conversation_id: str, num_bytes: int, num_items: int) -> Update:
    """Adjusts the conversation's stored size, in the transaction that changes its entries."""
    own = update(_CONVERSATIONS).where(_CONVERSATIONS.c.id == conversation_id)
    columns = _CONVERSATIONS.c
    return own.values(bytes=columns.bytes + num_bytes, num_items=columns.num_items + num_items)


def _row(conversation_id: str, entry: Entry) -> dict[str, Any]:
    return {
        "conversation": conversation_id,
        "id": entry.id,
        "ordinal": entry.ordinal,
        "added_at": entry.at,
        "items": _encode(entry.items),
    }


def _conversation(row: Row[Any]) -> Conversation:
    metadata = _decoded(row.metadata, dict[str, str], row.id)
    return Conversation(id=row.id, tenant=row.tenant, created_at=row.created_at, metadata=metadata)


def _entry(row: Row[Any]) -> Entry:
    items = _decoded(row.items, tuple[Item, ...], row.conversation)
    return Entry(ordinal=row.ordinal, at=row.added_at, id=row.id, items=items)


def _decoded(body: bytes, kind: Any, conversation_id: str) -> Any:
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except msgspec.DecodeError as error:
        message = f"The record of conversation {conversation_id} cannot be read."
        raise DependencyDown(message, code="record_unreadable") from error
