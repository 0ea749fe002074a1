"""Settles a store that has gone back in time, so that it can stand beside services that have not. Knows no archive.

Three things in a store only ever grow, and others compare what they have seen with it: the registry's revision, the
terms of leaders, the states of turns. After a restore of any kind:

* the counters are lifted above whatever they were before: to the time in milliseconds, as epochs are;
* batches are given up by whoever held them;
* web sessions end, because somebody may have signed out since; people sign in again;
* turns that had not ended are ended, unless the live service still knows them. The others were answered after the
  backup, or nobody waits for them any more, and to run them would answer them a second time.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, tuple_, update

from axon.adapters.store import schema
from axon.adapters.store.tables.terms import CONTROL
from axon.adapters.store.tables.turn_row import row_or_none, turn_or_none
from axon.domain.billing.ledger import Ledger
from axon.domain.failure import Failure
from axon.domain.log.chunk import Chunk
from axon.domain.session.erasure import without_words
from axon.domain.turn import Turn, TurnState, ended

_PAGE = 200
_TURNS = schema.turns.c
_MESSAGE = "The server's store was restored from a backup that did not know how this ended. Ask again."

Known = Callable[[Sequence[str]], Collection[str]]
"""Tells which of these turns the live service still knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What became of the turns that had not ended."""

    num_ended: int = 0
    num_left: int = 0
    """Turns that go on: the live service knows them, or they were to be run again."""


def settle(connection: Connection, *, now: float, known: Known | None) -> Settled:
    """Settles the store in the caller's transaction. Without ``known``, every turn that has not ended is left, to be
    run again."""
    _lift(connection, int(now * 1000))
    connection.execute(update(schema.batches).values(holder="", held_until=0.0))
    connection.execute(delete(schema.web_sessions))
    num_ended = num_left = 0
    after: tuple[float, str] | None = None
    while rows := _unfinished(connection, after):
        after = rows[-1].opened_at, rows[-1].id
        unknown = () if known is None else set(known_to_none(rows, known))
        num_left += len(rows) - len(unknown)
        num_ended += sum(_end(connection, row, now) for row in rows if row.id in unknown)
    return Settled(num_ended=num_ended, num_left=num_left)


def known_to_none(rows: Sequence[Row[Any]], known: Known) -> list[str]:
    """Ids of the turns that the live service has lost."""
    ids = [row.id for row in rows]
    found = set(known(ids))
    return [each for each in ids if each not in found]


def _lift(connection: Connection, least: int) -> None:
    revision, terms = schema.registry_revision, schema.terms
    connection.execute(update(revision).where(revision.c.revision < least).values(revision=least))
    connection.execute(update(terms).where(terms.c.number < least).values(number=least))
    if connection.scalar(select(terms.c.name).where(terms.c.name == CONTROL)) is None:
        connection.execute(insert(terms).values(name=CONTROL, number=least))


def _unfinished(connection: Connection, after: tuple[float, str] | None) -> Sequence[Row[Any]]:
    query = select(schema.turns).where(_TURNS.rank == TurnState.OPENED.rank)
    if after is not None:
        query = query.where(tuple_(_TURNS.opened_at, _TURNS.id) > tuple_(*after))
    return connection.execute(query.order_by(_TURNS.opened_at, _TURNS.id).limit(_PAGE)).all()


def _end(connection: Connection, row: Row[Any], now: float) -> bool:
    """Ends one turn; False if its record cannot be read, and nobody can run it either."""
    turn = turn_or_none(row)
    new = row_or_none(_cancelled(turn, now)) if turn is not None else None
    if new is None:
        return False
    connection.execute(update(schema.turns).where(_TURNS.id == row.id).values(new))
    return True


def _cancelled(turn: Turn, now: float) -> Turn:
    """The turn as cancelled, which frees its idempotency key. Nothing is billed: if the turn was answered after the
    backup, it was billed then."""
    unbegun = Ledger(queue_s=max(0.0, now - turn.opened_at))
    last = Chunk(
        first=1, epoch=0, terminal=TurnState.CANCELLED, code=Failure.RESTORED, message=_MESSAGE, ledger=unbegun
    )
    end = ended(turn, (last,), at=now)
    return without_words(end) if turn.job.forget else end
