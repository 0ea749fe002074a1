"""Web sessions in a database. Knows no cookie: their ids are digests."""

from sqlalchemy import delete, insert, select, update

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import known_ids_only, translated
from axon.domain.tenants.web_session import WebSession

_COLUMNS = schema.web_sessions.c


class SqlWebSessions:
    """The ``web_sessions`` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, session: WebSession, *, now: float, most: int) -> None:
        too_many = (
            select(_COLUMNS.id)
            .where(_COLUMNS.key_id == session.key_id)
            .where(_COLUMNS.user_name == session.user)
            .order_by(_COLUMNS.created_at.desc(), _COLUMNS.id)
            .offset(max(0, most - 1))
        )
        row = {
            "id": session.id,
            "key_id": session.key_id,
            "user_name": session.user,
            "created_at": session.created_at,
            "ends_at": session.ends_at,
        }
        with translated():
            async with self._database.begin() as connection:
                await connection.execute(delete(schema.web_sessions).where(_COLUMNS.ends_at <= now))
                # By their ids: one that is opened at the same time must not be ended for its not having been seen.
                if oldest := list((await connection.execute(too_many)).scalars()):
                    await connection.execute(delete(schema.web_sessions).where(_COLUMNS.id.in_(oldest)))
                await connection.execute(insert(schema.web_sessions).values(row))

    async def find(self, session_id: str) -> WebSession | None:
        row = None
        with known_ids_only():
            async with self._database.connect() as connection:
                found = await connection.execute(select(schema.web_sessions).where(_COLUMNS.id == session_id))
                row = found.one_or_none()
        if row is None:
            return None
        return WebSession(
            id=row.id, key_id=row.key_id, user=row.user_name, created_at=row.created_at, ends_at=row.ends_at
        )

    async def renew(self, session_id: str, *, ends_at: float) -> None:
        later = update(schema.web_sessions).where(_COLUMNS.id == session_id).where(_COLUMNS.ends_at < ends_at)
        with known_ids_only():
            async with self._database.begin() as connection:
                await connection.execute(later.values(ends_at=ends_at))

    async def end(self, session_id: str) -> bool:
        num_ended = 0
        with known_ids_only():
            async with self._database.begin() as connection:
                result = await connection.execute(delete(schema.web_sessions).where(_COLUMNS.id == session_id))
                num_ended = result.rowcount
        return num_ended > 0
