"""The counter of leaders' terms, in a database. Knows no leader."""

from sqlalchemy.dialects import postgresql, sqlite

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import translated

CONTROL = "control"
"""Name of the counter of control's leaders."""


class SqlTerms:
    """The ``terms`` table: one row for each counter."""

    def __init__(self, database: Database) -> None:
        self._database = database
        insert = sqlite.insert if database.dialect == "sqlite" else postgresql.insert
        first = insert(schema.terms).values(name=CONTROL, number=1)
        following = {"number": schema.terms.c.number + 1}
        self._take = first.on_conflict_do_update(index_elements=["name"], set_=following).returning(
            schema.terms.c.number
        )

    async def take(self) -> int:
        with translated():
            async with self._database.begin() as connection:
                return int((await connection.execute(self._take)).scalar_one())
