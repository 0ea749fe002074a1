"""Turns in a database: the columns that queries use, and the encoded turn as a body.

A purged turn keeps its row and loses its body. It is read back from the columns alone: ids, state, times, usage,
ledger, cost and code stay; prompt, tokens, messages, sampling and reply are empty. A job without a prompt marks a
purged turn.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    bindparam,
    case,
    exists,
    literal,
    literal_column,
    or_,
    select,
    tuple_,
    union,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from axon.adapters.store import schema
from axon.adapters.store.database import Database, Statement
from axon.adapters.store.driver_errors import (
    DRIVER_ERRORS,
    VALUE_ERRORS,
    concerns_record,
    known_ids_only,
    refused,
    translate,
    translated,
)
from axon.adapters.store.tables.ended import ended_turns
from axon.adapters.store.tables.turn_row import entry_of, row_or_none, turn_of, turn_or_none
from axon.adapters.store.tables.unfinished import count_unfinished, first_unfinished
from axon.domain.failure import Failure
from axon.domain.session import erasure
from axon.domain.session.conversation import Entry
from axon.domain.turn import Turn, TurnState, Unfinished
from axon.errors import DependencyDown

_COLUMNS = schema.turns.c
_PURGE_ROWS = 500
"""Rows that a purge changes per transaction, which bounds the time that it holds the write lock."""
_READ_ROWS = 200
"""Turns of a session that are decoded in memory at a time."""

_WORDLESS = {"body": None, "bytes": 0}
"""Column values of a purged or erased turn; it counts nothing towards a quota."""
_ENDED = _COLUMNS.rank > TurnState.OPENED.rank
_ORDER = tuple_(_COLUMNS.ordinal, _COLUMNS.opened_at, _COLUMNS.id)
"""Sort key of the turns of a session."""
_OF_ERASED_SESSION = exists().where(schema.tombstones.c.id == literal(erasure.SESSION) + _COLUMNS.session)
_FORGET_ERASED = (
    update(schema.turns)
    .where(_COLUMNS.id.in_(bindparam("ids", expanding=True)), _COLUMNS.body.is_not(None), _ENDED)
    .where(
        exists().where(
            schema.tombstones.c.id.in_(
                [literal(erasure.TURN) + _COLUMNS.id, literal(erasure.SESSION) + _COLUMNS.session]
            )
        )
    )
    .values(**_WORDLESS, pin=case((_OF_ERASED_SESSION, ""), else_=_COLUMNS.pin))
)
"""Erases turns with a tombstone in the transaction that writes them, so that a turn erased while it ran does not
come back with its end."""


class SqlTurns:
    """The ``turns`` table."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._upsert = _upsert(database.dialect)

    async def apply(self, turns: Sequence[Turn]) -> None:
        """Writes every turn that can be written, then raises the first failure."""
        for failure in await self.write(turns):
            if failure is not None:
                raise failure

    async def write(self, turns: Sequence[Turn]) -> Sequence[DependencyDown | None]:
        """Writes all turns in one transaction; returns each one's failure or None, in order. A refused record stops
        no other."""
        rows = [row_or_none(turn) for turn in turns]
        good = [row for row in rows if row is not None]
        failure: DependencyDown | None = None
        try:
            await self._commit(good)
        except (*DRIVER_ERRORS, *VALUE_ERRORS) as error:
            if concerns_record(error):
                return await self._write_each(rows)
            failure = translate(error)
        return [refused() if row is None else failure for row in rows]

    async def get(self, turn_id: str) -> Turn | None:
        query = select(schema.turns).where(_COLUMNS.id == turn_id)
        row = None
        with known_ids_only():
            async with self._database.connect() as connection:
                row = (await connection.execute(query)).one_or_none()
        return None if row is None else turn_of(row)

    async def retained(
        self, tenant: str, *, prefix: str, limit: int, deployment: str = "", after: str = "", newest_first: bool = False
    ) -> Sequence[Turn]:
        """Decodes rows; unreadable ones are logged and left out."""
        query = _retained(tenant, prefix, deployment, after, newest_first=newest_first)
        return [turn for row in await self._rows(query.limit(limit)) if (turn := turn_or_none(row)) is not None]

    async def unfinished(self, *, limit: int, after: tuple[float, str] | None = None) -> Sequence[Turn]:
        """Decodes rows; unreadable ones are logged and left out, so that one cannot keep a server from starting."""
        while True:
            with translated():
                async with self._database.connect() as connection:
                    rows = (await connection.execute(_unfinished(after).limit(limit))).all()
            turns = [turn for row in rows if (turn := turn_or_none(row)) is not None]
            if turns or len(rows) < limit:
                return turns
            after = rows[-1].opened_at, rows[-1].id  # none of these can be read: the next ones may be

    async def count_unfinished(self) -> Sequence[Unfinished]:
        return await count_unfinished(self._database)

    async def first_unfinished(self, deployment: str, version: str) -> str | None:
        return await first_unfinished(self._database, deployment, version)

    async def ended(self, *, since: float, limit: int) -> Sequence[Turn]:
        return await ended_turns(self._database, since=since, limit=limit)

    async def purge(self, *, ended_before: float) -> int:
        return await self._purge_all(_past_retention(ended_before))

    async def purge_idle(self, *, before: float) -> int:
        return await self._purge_all(_idle(before))

    async def entries(self, session: str, *, limit: int) -> Sequence[Entry]:
        query = _of_session(session)
        found: list[Entry] = []
        while (num_rows := min(_READ_ROWS, limit - len(found))) > 0:
            rows = await self._rows(query.limit(num_rows))
            found += map(entry_of, rows)
            if len(rows) < num_rows:
                break
            query = _of_session(session).where(tuple_(rows[-1].ordinal, rows[-1].opened_at, rows[-1].id) > _ORDER)
        return found[::-1]

    async def states(self, session: str) -> Mapping[str, TurnState]:
        query = select(_COLUMNS.id, _COLUMNS.state).where(_COLUMNS.session == session, _COLUMNS.session != "")
        return {row.id: TurnState(row.state) for row in await self._rows(query)}

    async def branches(self, session: str) -> Sequence[str]:
        own = schema.turns.alias("own")
        other = (_COLUMNS.session != session, _COLUMNS.previous != "")
        going_on = select(_COLUMNS.session).join(own, own.c.id == _COLUMNS.previous).where(own.c.session == session)
        beginning = select(_COLUMNS.session).where(_COLUMNS.previous == session)
        query = union(going_on.where(*other), beginning.where(*other))
        with translated():
            async with self._database.connect() as connection:
                return (await connection.execute(query)).scalars().all()

    async def told(self, sessions: Sequence[str], *, limit: int, after: str = "") -> Sequence[Turn]:
        """Decodes rows; unreadable ones are logged and left out."""
        rows = await self._rows(_told(sessions, after).limit(limit))
        return [turn for row in rows if (turn := turn_or_none(row)) is not None]

    async def erase_turn(self, turn_id: str) -> int:
        return await self._erase(_COLUMNS.id == turn_id, _WORDLESS)

    async def erase_session(self, session: str) -> int:
        return await self._erase((_COLUMNS.session == session) & (_COLUMNS.session != ""), {**_WORDLESS, "pin": ""})

    async def _erase(self, own: ColumnElement[bool], values: Mapping[str, Any]) -> int:
        forget = update(schema.turns).where(own, _COLUMNS.body.is_not(None), _ENDED).values(**values)
        with translated():
            async with self._database.begin(erases=True) as connection:
                return (await connection.execute(forget)).rowcount

    async def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        rows: Sequence[Row[Any]] = ()
        with known_ids_only():
            async with self._database.connect() as connection:
                rows = (await connection.execute(query)).all()
        return rows

    async def _commit(self, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            # Sorted, so that two writers of the same rows cannot deadlock.
            ordered = sorted(rows, key=_by_id)
            # A list of one takes a slower path through the driver.
            statements: list[Statement] = [(self._upsert, ordered if len(ordered) > 1 else ordered[0])]
            if erasable := [row["id"] for row in ordered if row["rank"] and (row["session"] or row["retain"])]:
                statements.append((_FORGET_ERASED, {"ids": erasable}))
            await self._database.transact(statements)

    async def _write_each(self, rows: Sequence[dict[str, Any] | None]) -> Sequence[DependencyDown | None]:
        """Writes rows one by one to find the refused ones; a failure of the store itself ends the search."""
        failures: list[DependencyDown | None] = []
        for number, row in enumerate(rows):
            try:
                await self._commit([row] if row is not None else [])
                failures.append(refused() if row is None else None)
            except (*DRIVER_ERRORS, *VALUE_ERRORS) as error:
                failures.append(translate(error))
                if not concerns_record(error):
                    return failures + [refused() if left is None else failures[-1] for left in rows[number + 1 :]]
        return failures

    async def _purge_all(self, due: Select[tuple[str]]) -> int:
        num_purged = 0
        while (num_rows := await self._purge_some(due)) > 0:
            num_purged += num_rows
        return num_purged

    async def _purge_some(self, due: Select[tuple[str]]) -> int:
        forget = update(schema.turns).where(_COLUMNS.id.in_(due)).values(**_WORDLESS)
        with translated():
            async with self._database.begin(erases=True) as connection:
                return (await connection.execute(forget)).rowcount


def _upsert(dialect: str) -> Any:
    """Upsert condition: a higher rank, more tokens before the end, or a real end after one that a restore made up,
    replaces the stored row; see ``supersedes``."""
    insert = sqlite.insert(schema.turns) if dialect == "sqlite" else postgresql.insert(schema.turns)
    fresh = {column.name: insert.excluded[column.name] for column in _COLUMNS if column.name != "id"}
    says_more = and_(
        _COLUMNS.rank == TurnState.OPENED.rank,
        insert.excluded.rank == TurnState.OPENED.rank,
        insert.excluded.output_tokens > _COLUMNS.output_tokens,
    )
    is_real_end = and_(
        _COLUMNS.code == literal_column(f"'{Failure.RESTORED}'"),
        insert.excluded.rank > TurnState.OPENED.rank,
        insert.excluded.code != literal_column(f"'{Failure.RESTORED}'"),
    )
    supersedes = or_(insert.excluded.rank > _COLUMNS.rank, says_more, is_real_end)
    return insert.on_conflict_do_update(index_elements=[_COLUMNS.id], set_=fresh, where=supersedes)


def _by_id(row: Mapping[str, Any]) -> str:
    return str(row["id"])


def _unfinished(after: tuple[float, str] | None) -> Select[Any]:
    query = select(schema.turns).where(_COLUMNS.rank == TurnState.OPENED.rank)
    if after is not None:
        query = query.where(tuple_(_COLUMNS.opened_at, _COLUMNS.id) > tuple_(*after))
    return query.order_by(_COLUMNS.opened_at, _COLUMNS.id)


def _retained(tenant: str, prefix: str, deployment: str, after: str, *, newest_first: bool) -> Select[Any]:
    """Query for a tenant's retained turns of no session; the index by storage has those with text."""
    own = (_COLUMNS.tenant == tenant, _COLUMNS.retain == True, _COLUMNS.session == "")  # noqa: E712
    has_text = (_COLUMNS.body.is_not(None), _COLUMNS.bytes > 0, _COLUMNS.state == str(TurnState.COMPLETED))
    query = select(schema.turns).where(*own, *has_text, _COLUMNS.id.startswith(prefix, autoescape=True))
    if deployment:
        query = query.where(_COLUMNS.deployment == deployment)
    order = tuple_(_COLUMNS.opened_at, _COLUMNS.id)
    if after:
        last = schema.turns.alias("last")
        at = select(last.c.opened_at).where(last.c.id == after, last.c.tenant == tenant).scalar_subquery()
        query = query.where(order < tuple_(at, literal(after)) if newest_first else order > tuple_(at, literal(after)))
    columns = (_COLUMNS.opened_at, _COLUMNS.id)
    return query.order_by(*(each.desc() for each in columns) if newest_first else columns)


def _of_session(session: str) -> Select[Any]:
    """Query for a session's turns, the last first; bodies only of those that add items."""
    body = case((_COLUMNS.state == str(TurnState.COMPLETED), _COLUMNS.body)).label("body")
    columns = [column for column in _COLUMNS if column.name != "body"]
    own = (_COLUMNS.session == session, _COLUMNS.session != "")
    last = (_COLUMNS.ordinal.desc(), _COLUMNS.opened_at.desc(), _COLUMNS.id.desc())
    return select(*columns, body).where(*own).order_by(*last)


def _told(sessions: Sequence[str], after: str) -> Select[Any]:
    """Query for the turns of sessions that have text, the first first."""
    own = (_COLUMNS.session.in_([each for each in sessions if each]), _COLUMNS.session != "")
    query = select(schema.turns).where(*own, _COLUMNS.body.is_not(None))
    if after:
        last = schema.turns.alias("last")
        at = select(last.c.opened_at).where(last.c.id == after).scalar_subquery()
        query = query.where(tuple_(_COLUMNS.opened_at, _COLUMNS.id) > tuple_(at, literal(after)))
    return query.order_by(_COLUMNS.opened_at, _COLUMNS.id)


def _past_retention(ended_before: float) -> Select[tuple[str]]:
    return _purgeable(_COLUMNS.retain == False, _COLUMNS.ended_at < ended_before)  # noqa: E712


def _idle(idle_before: float) -> Select[tuple[str]]:
    """Condition for retained turns of idle sessions; a session is purged as a whole."""
    later = schema.turns.alias("later")
    goes_on = exists().where(later.c.session == _COLUMNS.session, later.c.opened_at >= idle_before)
    used = exists().where(schema.conversations.c.id == _COLUMNS.session, schema.conversations.c.used_at >= idle_before)
    kept = _COLUMNS.retain == True  # noqa: E712
    return _purgeable(kept, _COLUMNS.session != "", _COLUMNS.ended_at < idle_before, ~goes_on, ~used)


def _purgeable(*due: ColumnElement[bool]) -> Select[tuple[str]]:
    """Skips rows locked by a writer until the next purge, so that neither waits for the other."""
    return (
        select(_COLUMNS.id)
        .where(_COLUMNS.body.is_not(None), *due)
        .order_by(_COLUMNS.ended_at)
        .limit(_PURGE_ROWS)
        .with_for_update(skip_locked=True, of=schema.turns)
    )
