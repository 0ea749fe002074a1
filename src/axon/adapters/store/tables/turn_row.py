"""The row of a turn: its columns, its encoded body, and the turn that is read back from them. Asks no database."""

from dataclasses import replace
from typing import Any

import msgspec
import structlog
from sqlalchemy import Row

from axon.adapters.store.driver_errors import VALUE_ERRORS
from axon.domain import wire
from axon.domain.billing.cost import Amount, Cost
from axon.domain.billing.ledger import Ledger
from axon.domain.billing.usage import Usage
from axon.domain.content.item import Item
from axon.domain.job import Job
from axon.domain.log.chunk import End, Token
from axon.domain.model.adapter import JobAdapter, mark_of
from axon.domain.sampling import Sampling
from axon.domain.session import conversation
from axon.domain.session.conversation import Entry
from axon.domain.turn import Turn, TurnState, cost_of
from axon.errors import DependencyDown
from axon.telemetry.logs import about

_logger = structlog.get_logger("axon.store")


class _Asked(msgspec.Struct, frozen=True):
    """The fields of a job that an entry needs."""

    items: tuple[Item, ...] = ()


class _Said(msgspec.Struct, frozen=True):
    """The fields of a turn that an entry needs. The prompt, the largest part of a long session, is not decoded."""

    job: _Asked
    tokens: tuple[Token, ...] = ()
    ends: tuple[End, ...] = ()


def _row(turn: Turn) -> dict[str, Any]:
    body, cost = wire.encode(turn), cost_of(turn)
    return {
        "id": turn.id,
        "tenant": turn.tenant,
        "state": str(turn.state),
        "rank": turn.state.rank,
        "deployment": turn.job.deployment,
        "version": turn.job.version,
        "session": turn.job.session,
        "ordinal": turn.job.ordinal,
        "previous": turn.job.previous,
        "opened_at": turn.opened_at,
        "ended_at": turn.ended_at,
        "prompt_tokens": turn.usage.prompt_tokens,
        "cached_tokens": turn.usage.cached_tokens,
        "output_tokens": turn.usage.output_tokens,
        "code": turn.code,
        "retain": turn.job.retain,
        "ledger": None if turn.ledger is None else msgspec.msgpack.encode(turn.ledger),
        "body": body,
        "bytes": len(body),
        "pin": turn.job.pin,
        "generation": turn.job.generation,
        "adapter": mark_of(turn.job.adapter.digest) if turn.job.adapter else "",
        "price": turn.job.price,
        "cost_nanos": cost.amount.total_nanos if cost else 0,
        "currency": cost.amount.currency if cost else "",
    }


def row_or_none(turn: Turn) -> dict[str, Any] | None:
    """The row of a turn; None if it cannot be encoded, which is logged."""
    try:
        return _row(turn)
    except (*VALUE_ERRORS, TypeError, ValueError, RecursionError):
        _logger.exception("turn.not_encoded", **about(turn.job))
        return None


def turn_of(row: Row[Any]) -> Turn:
    """The turn of a row; raises ``DependencyDown`` if its body cannot be read."""
    if row.body is None:
        return replace(_remains(row), ledger=_ledger(row))
    try:
        return wire.decode(Turn, row.body)
    except msgspec.DecodeError as error:
        raise _unreadable(row) from error


def _ledger(row: Row[Any]) -> Ledger | None:
    return None if row.ledger is None else msgspec.msgpack.decode(row.ledger, type=Ledger)


def entry_of(row: Row[Any]) -> Entry:
    """What the turn of a row adds to its history."""
    remains = _remains(row)
    bare = conversation.entry_of(remains)
    if row.body is None:
        return bare
    try:
        said = msgspec.msgpack.decode(row.body, type=_Said)
    except msgspec.DecodeError as error:
        raise _unreadable(row) from error
    answers = conversation.answers(replace(remains, tokens=said.tokens, ends=said.ends))
    return replace(bare, items=(*said.job.items, *answers))


def _unreadable(row: Row[Any]) -> DependencyDown:
    return DependencyDown(f"The record of turn {row.id} cannot be read.", code="record_unreadable")


def turn_or_none(row: Row[Any]) -> Turn | None:
    """The turn of a row; None if its body cannot be read, which is logged."""
    try:
        return turn_of(row)
    except DependencyDown:
        _logger.exception("turn.left_out", turn=row.id)
        return None


def _remains(row: Row[Any]) -> Turn:
    """Rebuilds a purged turn from its columns."""
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
        ordinal=row.ordinal,
        previous=row.previous,
        retain=row.retain,
        pin=row.pin,
        generation=row.generation,
        price=row.price,
        adapter=JobAdapter(name="", digest=row.adapter, source="") if row.adapter else None,
    )
    usage = Usage(prompt_tokens=row.prompt_tokens, cached_tokens=row.cached_tokens, output_tokens=row.output_tokens)
    cost = Cost(price=row.price, amount=Amount.of(row.cost_nanos, row.currency)) if row.currency else None
    return Turn(
        id=row.id,
        tenant=row.tenant,
        state=TurnState(row.state),
        opened_at=row.opened_at,
        ended_at=row.ended_at,
        job=job,
        usage=usage,
        cost=cost,
        code=row.code,
    )
