"""Measures what a database stores for a tenant: three sums over covering indexes. Writes nothing.

Each row carries its own size, written with the row itself, so that no counter can drift from what it counts. A purged
or erased turn loses its body and its size together, and leaves the index with them.
"""

from collections import Counter
from typing import Any

import msgspec
from sqlalchemy import Select, distinct, func, or_, select

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only, translated
from axon.domain.batch import Batch
from axon.domain.census import Census
from axon.domain.tenants.storage import Stored
from axon.domain.turn import TurnState

_TURNS, _CONVERSATIONS, _FILES = schema.turns.c, schema.conversations.c, schema.files.c
_MAX_BATCHES = 1000
_RUNS = _TURNS.rank == TurnState.OPENED.rank
_SESSIONS = select(func.count(distinct(_TURNS.session))).where(_TURNS.session != "")
_OPEN_BATCHES = select(schema.batches.c.body).where(schema.batches.c.ended == False).limit(_MAX_BATCHES)  # noqa: E712
_ENDED_BATCHES = select(func.count()).select_from(schema.batches).where(schema.batches.c.ended == True)  # noqa: E712
_FILES_BY_PURPOSE = select(_FILES.purpose, func.count().label("number")).group_by(_FILES.purpose)
_decode = msgspec.msgpack.Decoder(Batch).decode


class SqlStorage:
    """Sums over the ``turns``, ``conversations`` and ``files`` tables."""

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

    async def census(self, *, since: float) -> Census:
        with translated():
            async with self._database.connect() as connection:
                active, sessions = [
                    int((await connection.execute(query)).scalar_one())
                    for query in (_SESSIONS.where(_RUNS), _SESSIONS.where(or_(_RUNS, _TURNS.opened_at >= since)))
                ]
                states = Counter(
                    str(_decode(body).state) for body in (await connection.execute(_OPEN_BATCHES)).scalars().all()
                )
                states["ended"] = int((await connection.execute(_ENDED_BATCHES)).scalar_one())
                files = {row.purpose: int(row.number) for row in (await connection.execute(_FILES_BY_PURPOSE)).all()}
        return Census(active_sessions=active, sessions=sessions, batches=dict(states), files=files)

    def queries(self, tenant: str) -> tuple[Select[Any, int], ...]:
        """Bytes and number of the tenant's retained turns with text, of its conversations with their added items, and
        of its files."""
        turns = select(func.sum(_TURNS.bytes), func.count())
        conversations = select(
            func.sum(_CONVERSATIONS.bytes), func.count() + func.coalesce(func.sum(_CONVERSATIONS.num_items), 0)
        )
        return (
            turns.where(_TURNS.tenant == tenant, _TURNS.retain == True, self._has_words),  # noqa: E712
            conversations.where(_CONVERSATIONS.tenant == tenant),
            select(func.sum(_FILES.bytes), func.count()).where(_FILES.tenant == tenant),
        )
