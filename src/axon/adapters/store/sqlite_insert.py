"""The text of an INSERT of SQLite for any number of rows, with the rows' values in its order. Runs nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.sql.dml import Insert as SqlInsert
from sqlalchemy.sql.dml import UpdateBase

from axon.adapters.store.database import Parameters

MAX_ROWS = 64
"""Rows of one statement at most. The driver keeps a compiled statement for every number of rows that it has met."""

Run = tuple[str, list[Any]]
"""A statement's text, and the values of its parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """An insert in parts: ``head``, one ``group`` of parameters for each row, ``tail``."""

    head: str
    group: str
    tail: str
    names: tuple[str, ...]
    """A row's parameters in the order of the group."""
    constants: tuple[Any, ...]
    """Values of the tail's parameters."""

    def runs(self, rows: Sequence[Parameters]) -> list[Run]:
        """The statements that insert these rows: one, unless there are more than ``MAX_ROWS``."""
        parts = [rows[start : start + MAX_ROWS] for start in range(0, len(rows), MAX_ROWS)]
        return [(self._text(len(part)), self._values(part)) for part in parts]

    def _text(self, num_rows: int) -> str:
        return self.head + ", ".join([self.group] * num_rows) + self.tail

    def _values(self, rows: Sequence[Parameters]) -> list[Any]:
        return [*(row[name] for row in rows for name in self.names), *self.constants]


def insert_of(statement: UpdateBase) -> Insert | None:
    """The insert that a statement is; None for any other statement, or if its text depends on its parameters.

    It is compiled once: SQLAlchemy's own cache costs more than SQLite takes to write a row.
    """
    if not isinstance(statement, SqlInsert):
        return None
    compiled = statement.compile(dialect=sqlite_dialect(paramstyle="qmark"))
    if compiled.post_compile_params or compiled.positiontup is None:
        return None
    head, values, rest = str(compiled).partition(" VALUES ")
    group, end, tail = rest.partition(")")
    num_each = group.count("?")
    if set(group) - set("(?, ") or not num_each:
        return None  # a value is an expression
    names, others = compiled.positiontup[:num_each], compiled.positiontup[num_each:]
    return Insert(
        head=head + values,
        group=group + end,
        tail=tail,
        names=tuple(names),
        constants=tuple(compiled.params[name] for name in others),
    )
