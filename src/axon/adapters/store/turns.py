"""Turns in a database: a row's columns are what is asked for, its body is the turn itself, encoded.

A purged turn keeps its row and loses its body. It is read back from the columns alone: ids, state, times, usage and
code stay; prompt, tokens, messages, sampling and reply are empty. A job without a prompt is the mark of a purged one.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, Select, select, update
from sqlalchemy.dialects import postgresql, sqlite

from axon.adapters.store import schema
from axon.adapters.store.database import Database
from axon.adapters.store.failures import (
    DRIVER_ERRORS,
    VALUE_ERRORS,
    concerns_record,
    known_ids_only,
    refused,
    told,
    translated,
)
from axon.domain import wire
from axon.domain.job import Job
from axon.domain.sampling import Sampling
from axon.domain.turn import Turn, TurnState
from axon.domain.usage import Usage
from axon.errors import DependencyDown

_COLUMNS = schema.turns.c
_PURGE_ROWS = 500
"""A purge holds the write lock for so many rows at a time."""

_log = logging.getLogger(__name__)


class SqlTurns:
    """The ``turns`` table."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._upsert = _upsert(database.dialect)

    async def apply(self, turns: Sequence[Turn]) -> None:
        """Writes all that can be written, then raises for the first that could not."""
        for failure in await self.write(turns):
            if failure is not None:
                raise failure

    async def write(self, turns: Sequence[Turn]) -> Sequence[DependencyDown | None]:
        """One transaction for all; what became of each, in order. A record that is refused stops no other."""
        rows = [_row_or_none(turn) for turn in turns]
        good = [row for row in rows if row is not None]
        failure: DependencyDown | None = None
        try:
            await self._commit(good)
        except (*DRIVER_ERRORS, *VALUE_ERRORS) as error:
            if concerns_record(error):
                return await self._write_each(rows)
            failure = told(error)
        return [refused() if row is None else failure for row in rows]

    async def get(self, turn_id: str) -> Turn | None:
        query = select(schema.turns).where(_COLUMNS.id == turn_id)
        row = None
        with known_ids_only():
            async with self._database.connect() as connection:
                row = (await connection.execute(query)).one_or_none()
        return None if row is None else _turn(row)

    async def unfinished(self, *, limit: int) -> Sequence[Turn]:
        """Unreadable records are left out and logged: one of them must not keep a server from starting."""
        query = select(schema.turns).where(_COLUMNS.rank == TurnState.OPENED.rank)
        with translated():
            async with self._database.connect() as connection:
                rows = (await connection.execute(query.order_by(_COLUMNS.opened_at, _COLUMNS.id).limit(limit))).all()
        return [turn for row in rows if (turn := _turn_or_none(row)) is not None]

    async def purge(self, *, ended_before: float) -> int:
        num_purged = 0
        while (num_rows := await self._purge_some(ended_before)) > 0:
            num_purged += num_rows
        return num_purged

    async def _commit(self, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            async with self._database.begin() as connection:
                # In one order everywhere: two writers that meet each other's rows the other way round never end.
                ordered = sorted(rows, key=_by_id)
                # A list of one goes a slower way through the driver.
                await connection.execute(self._upsert, ordered if len(ordered) > 1 else ordered[0])

    async def _write_each(self, rows: Sequence[dict[str, Any] | None]) -> Sequence[DependencyDown | None]:
        """Finds the records that are refused; a failure of the store itself ends the search."""
        failures: list[DependencyDown | None] = []
        for number, row in enumerate(rows):
            try:
                await self._commit([row] if row is not None else [])
                failures.append(refused() if row is None else None)
            except (*DRIVER_ERRORS, *VALUE_ERRORS) as error:
                failures.append(told(error))
                if not concerns_record(error):
                    return failures + [refused() if left is None else failures[-1] for left in rows[number + 1 :]]
        return failures

    async def _purge_some(self, ended_before: float) -> int:
        forget = update(schema.turns).where(_COLUMNS.id.in_(_purgeable(ended_before))).values(body=None)
        with translated():
            async with self._database.begin() as connection:
                return (await connection.execute(forget)).rowcount


def _upsert(dialect: str) -> Any:
    """The stored row gives way to a higher rank only, so late and repeated records change nothing."""
    insert = sqlite.insert(schema.turns) if dialect == "sqlite" else postgresql.insert(schema.turns)
    fresh = {column.name: insert.excluded[column.name] for column in _COLUMNS if column.name != "id"}
    return insert.on_conflict_do_update(
        index_elements=[_COLUMNS.id], set_=fresh, where=insert.excluded.rank > _COLUMNS.rank
    )


def _by_id(row: Mapping[str, Any]) -> str:
    return str(row["id"])


def _purgeable(ended_before: float) -> Select[tuple[str]]:
    """Rows that a writer holds are left for the next purge, so that neither waits for the other."""
    query = select(_COLUMNS.id).where(_COLUMNS.body.is_not(None), _COLUMNS.retain == False)  # noqa: E712
    return (
        query.where(_COLUMNS.ended_at < ended_before)
        .order_by(_COLUMNS.ended_at)
        .limit(_PURGE_ROWS)
        .with_for_update(skip_locked=True)
    )


def _row(turn: Turn) -> dict[str, Any]:
    return {
        "id": turn.id,
        "tenant": turn.tenant,
        "state": str(turn.state),
        "rank": turn.state.rank,
        "deployment": turn.job.deployment,
        "version": turn.job.version,
        "session": turn.job.session,
        "opened_at": turn.opened_at,
        "ended_at": turn.ended_at,
        "prompt_tokens": turn.usage.prompt_tokens,
        "cached_tokens": turn.usage.cached_tokens,
        "output_tokens": turn.usage.output_tokens,
        "code": turn.code,
        "retain": turn.job.retain,
        "body": wire.encode(turn),
    }


def _row_or_none(turn: Turn) -> dict[str, Any] | None:
    try:
        return _row(turn)
    except (*VALUE_ERRORS, TypeError, ValueError, RecursionError):
        _log.exception("turn %r cannot be encoded", turn.id)
        return None


def _turn(row: Row[Any]) -> Turn:
    if row.body is None:
        return _remains(row)
    try:
        return wire.decode(Turn, row.body)
    except msgspec.DecodeError as error:
        raise DependencyDown(f"The record of turn {row.id} cannot be read.", code="record_unreadable") from error


def _turn_or_none(row: Row[Any]) -> Turn | None:
    try:
        return _turn(row)
    except DependencyDown:
        _log.exception("turn %r is left out", row.id)
        return None


def _remains(row: Row[Any]) -> Turn:
    """A purged turn: what the columns still know of it."""
    job = Job(
        id=row.id,
        tenant=row.tenant,
        deployment=row.deployment,
        version=row.version,
        lane="",
        prompt_ids=(),
        sampling=Sampling(max_tokens=0),
        seed=0,
        deadline=row.opened_at,
        created=row.opened_at,
        session=row.session,
    )
    usage = Usage(prompt_tokens=row.prompt_tokens, cached_tokens=row.cached_tokens, output_tokens=row.output_tokens)
    return Turn(
        id=row.id,
        tenant=row.tenant,
        state=TurnState(row.state),
        opened_at=row.opened_at,
        ended_at=row.ended_at,
        job=job,
        usage=usage,
        code=row.code,
    )
