"""A turn: one request to a model and its answer. Its state transitions are pure. Knows no store and no clock.

    opened ──► completed | failed | cancelled | expired

A turn is opened when it is accepted and ends exactly once. The journal records the turn at each change of state, and
from time to time its tokens so far. A store takes a record only if its rank is higher than the stored one's, or if it
has more tokens before the end, so records may come late, twice or reordered. There is one exception, after a restore:
see ``supersedes``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from axon.domain.billing.cost import Cost
from axon.domain.billing.ledger import Ledger, latest
from axon.domain.billing.usage import Usage
from axon.domain.failure import Failure
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, End, Token


class TurnState(StrEnum):
    OPENED = "opened"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def terminal(self) -> bool:
        return self is not TurnState.OPENED

    @property
    def rank(self) -> int:
        return 1 if self.terminal else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """How many accepted turns of a deployment's version have not ended."""

    deployment: str
    version: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn as it stood when this record was made."""

    v: int = 1
    id: str
    tenant: str
    state: TurnState
    opened_at: float
    ended_at: float | None = None
    job: Job
    tokens: tuple[Token, ...] = ()
    ends: tuple[End, ...] = ()
    usage: Usage = field(default_factory=Usage)
    ledger: Ledger | None = None
    """Tokens and time spent on it; None for a turn that no worker has run."""
    cost: Cost | None = None
    """The cost of its usage, fixed when it ends; None before, and for a turn without a price."""
    code: str = ""
    message: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def chunk(self) -> Chunk:
        """The whole answer as one chunk, for a reader who comes after the log has gone."""
        return Chunk(
            first=1,
            epoch=0,
            tokens=self.tokens,
            ends=self.ends,
            terminal=self.state if self.state.terminal else "",
            code=self.code,
            message=self.message,
            cached=self.usage.cached_tokens,
            reasoned=self.usage.reasoning_tokens,
            ledger=self.ledger,
        )


def opened(job: Job) -> Turn:
    """The turn of a job that is being accepted."""
    return Turn(id=job.id, tenant=job.tenant, state=TurnState.OPENED, opened_at=job.created, job=job)


def so_far(job: Job, chunk: Chunk) -> Turn:
    """The turn while it runs, with its tokens so far; ``chunk`` is its stream from seq 1."""
    return replace(
        opened(job), tokens=chunk.tokens, ends=chunk.ends, usage=_usage(job, (chunk,)), ledger=_ledger((chunk,))
    )


def ended(turn: Turn, chunks: tuple[Chunk, ...], *, at: float) -> Turn:
    """The turn after its stream's terminal chunk; a turn that has ended stays as it is."""
    if turn.state.terminal:
        return turn
    last, usage = chunks[-1], _usage(turn.job, chunks)
    return replace(
        turn,
        state=TurnState(last.terminal),
        ended_at=at,
        tokens=tuple(token for chunk in chunks for token in chunk.tokens),
        ends=tuple({end.choice: end for chunk in chunks for end in chunk.ends}.values()),
        usage=usage,
        ledger=_ledger(chunks),
        cost=turn.job.cost_of(usage),
        code=last.code,
        message=last.message,
    )


def unbilled(turn: Turn) -> Turn:
    """The ended turn without its answer, usage and cost, because its client was told that it was not accepted: the
    tokens of the answer count as wasted."""
    ledger = turn.ledger
    if ledger is not None:
        ledger = replace(ledger, queued=0, emitted=0, wasted=ledger.wasted + ledger.emitted)
    return replace(turn, tokens=(), ends=(), usage=Usage(), ledger=ledger, cost=turn.job.cost_of(Usage()))


def cost_of(turn: Turn) -> Cost | None:
    """The cost of an ended turn. A process of the release before ends turns without it, and keeps the job's rates."""
    return turn.cost or (turn.job.cost_of(turn.usage) if turn.state.terminal else None)


def supersedes(new: Turn, stored: Turn | None) -> bool:
    """Whether a store replaces its record by this one; late and repeated records change nothing.

    An end that a restore made up (``Failure.RESTORED``) yields to the real one, which the journal may still have.
    """
    if stored is None or new.state.rank > stored.state.rank:
        return True
    if stored.state.terminal:
        return stored.code == Failure.RESTORED and new.state.terminal and new.code != Failure.RESTORED
    return new.usage.output_tokens > stored.usage.output_tokens


def _usage(job: Job, chunks: tuple[Chunk, ...]) -> Usage:
    ledger = _ledger(chunks)
    is_unbegun = ledger is not None and not ledger.attempts
    return Usage(
        prompt_tokens=0 if is_unbegun else job.num_prompt_tokens,
        cached_tokens=max(chunk.cached for chunk in chunks),
        output_tokens=sum(len(chunk.tokens) for chunk in chunks),
        reasoning_tokens=max(chunk.reasoned for chunk in chunks),
    )


def _ledger(chunks: tuple[Chunk, ...]) -> Ledger | None:
    known = [chunk.ledger for chunk in chunks if chunk.ledger is not None]
    return latest(known, emitted=sum(len(chunk.tokens) for chunk in chunks))
