"""Measures what a database stores for a tenant: two sums over covering indexes. Writes nothing.

Each row carries its own size, written with the row itself, so that no counter can drift from what it counts. A purged
or erased turn loses its body and its size together, and leaves the index with them.
"""

from typing import Any

from sqlalchemy import Select, func, select

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only
from axon.domain.storage import Stored

_TURNS, _CONVERSATIONS = schema.turns.c, schema.conversations.c


class SqlStorage:
    """Sums over the ``turns`` and ``conversations`` tables."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Written as the index of each database has it: see ``schema``.
        self._has_words = _TURNS.bytes > 0 if database.dialect == "sqlite" else _TURNS.body.is_not(None)

    async def stored(self, tenant: str) -> Stored:
        found = Stored()
        with known_ids_only():
            async with self._database.connect() as connection:
                for query in self.queries(tenant):
                    num_bytes, num_objects = (await connection.execute(query)).one()
                    found += Stored(num_bytes=int(num_bytes or 0), num_objects=int(num_objects))
        return found

    def queries(self, tenant: str) -> tuple[Select[Any, int], ...]:
        """Bytes and number of the tenant's retained turns with text, and of its conversations with their added
        items."""
        turns = select(func.sum(_TURNS.bytes), func.count())
        conversations = select(
            func.sum(_CONVERSATIONS.bytes), func.count() + func.coalesce(func.sum(_CONVERSATIONS.num_items), 0)
        )
        return (
            turns.where(_TURNS.tenant == tenant, _TURNS.retain == True, self._has_words),  # noqa: E712
            conversations.where(_CONVERSATIONS.tenant == tenant),
        )
