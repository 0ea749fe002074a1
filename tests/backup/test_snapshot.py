"""A backup sees the store as it was at one moment, and keeps nobody from writing."""

import asyncio

from sqlalchemy import Connection

from axon.adapters.backup.contents import revision_of, rows_of, tables_of
from axon.adapters.backup.database import snapshot
from tests.backup.places import Place
from tests.contracts.builders import make_ended, make_job, make_key


def test_what_is_written_after_the_first_read_is_in_no_table(place: Place) -> None:
    async def write() -> None:
        async with place.opened() as store:
            await store.keys.add(make_key("k_later"))
            await store.turns.apply([make_ended(make_job("turn_later"))])

    with snapshot(place.address) as connection:
        assert revision_of(connection) is not None
        before = _ids(connection, "keys")
        asyncio.run(write())  # nobody waits for the backup
        assert _ids(connection, "keys") == before
        assert "turn_later" not in _ids(connection, "turns")
    with snapshot(place.address) as connection:
        assert "turn_later" in _ids(connection, "turns")


def _ids(connection: Connection, name: str) -> set[str]:
    [table] = [table for table in tables_of(connection) if table.name == name]
    at = list(table.columns.keys()).index("id")
    return {str(row[at]) for row in rows_of(connection, table)}
