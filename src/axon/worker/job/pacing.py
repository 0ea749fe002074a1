"""Rate limiting of running streams: reports the tokens they use to admission, and applies what admission grants.

Decides nothing itself: admission holds the token buckets, ``allowance`` says what follows for one stream.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog
from prometheus_client import Gauge

from axon.admission.admission import Allowed, Pulse
from axon.admission.ticket import Ticket
from axon.errors import AxonError, BudgetSpent
from axon.runtime.clock import Clock
from axon.worker.job.allowance import Stream, pace
from axon.worker.job.hands import Hands
from axon.worker.job.running import Running
from axon.worker.lease import Lease

_TICK_S = 0.2
_RENEW_S = 1.0
"""Seconds between two renewals of the ticket of a job whose tokens are not metered."""
_EARLY_S = _RENEW_S / 2
"""A renewal comes sooner by up to this if others are sent anyway, so that jobs that began apart share a call."""

_logger = structlog.get_logger("axon.worker")


class Tickets(Protocol):
    """Admission, as a worker needs it."""

    async def beat(self, pulses: Sequence[Pulse]) -> Mapping[str, Allowed]: ...


class _Metered:
    """One attempt at a job, with what admission has granted it."""

    def __init__(self, running: Running, ticket: Ticket) -> None:
        self.running, self.ticket = running, ticket
        self.reported_at: float | None = None
        """Monotonic time of its last report; None before the first."""
        self.allowed = float(ticket.reserved)
        if ticket.tokens_per_minute:
            self.allowed = min(self.allowed, ticket.tokens_per_minute)
        self._num_reported = 0
        """Tokens it had made at its last report."""

    @property
    def is_paced(self) -> bool:
        return self.ticket.tokens_per_minute > 0

    def stream(self) -> Stream:
        running = self.running
        return Stream(
            prompt=running.job.num_prompt_tokens,
            allowed=self.allowed,
            logged=running.sent,
            made=len(running.tokens),
            recent=max(0, len(running.tokens) - self._num_reported),
            is_over=running.terminal is not None,
            is_paused=running.is_paused,
        )

    def pulse(self) -> Pulse:
        running = self.running
        more = pace(self.stream()).more if self.is_paced else 0
        self._num_reported = len(running.tokens)
        return Pulse(job=running.job, used=running.job.num_prompt_tokens + running.sent, more=more, waits=False)


class Pacing:
    """``begin`` for every attempt that comes in; ``run`` until cancelled."""

    def __init__(self, hands: Hands, lease: Lease, tickets: Tickets, *, clock: Clock, paced: Gauge) -> None:
        """``paced`` shows how many jobs are held back."""
        self._hands, self._lease, self._tickets = hands, lease, tickets
        self._clock, self._paced = clock, paced
        self._jobs: dict[str, _Metered] = {}
        self._num_rounds = 0

    def begin(self, running: Running) -> None:
        """A new attempt may append what its ticket has set aside, until admission grants more."""
        metered = self._jobs[running.job.id] = _Metered(running, Ticket.parse(running.job.ticket))
        if metered.is_paced:
            running.limit = pace(metered.stream()).limit

    async def run(self) -> None:
        """Reports until cancelled."""
        while True:
            await asyncio.sleep(_TICK_S)
            try:
                await self.beat()
            except AxonError as error:
                _logger.warning("tickets.not_renewed", jobs=len(self._jobs), error=str(error), retry_s=_TICK_S)

    async def beat(self) -> None:
        """Reports all jobs that are due, in one call, and applies the answer."""
        self._jobs = {job_id: each for job_id, each in self._jobs.items() if self._hands.holds(each.running)}
        self._paced.set(sum(each.running.is_held_back for each in self._jobs.values()))
        if not self._lease.holds:
            return  # the jobs may be another worker's by now
        now = self._clock.monotonic()
        jobs = self._in_turn()
        if not any(_is_due(each, now) for each in jobs):
            return
        due = [each for each in jobs if _is_due(each, now + _EARLY_S)]
        allowed = await self._tickets.beat([each.pulse() for each in due])
        for each in due:
            if each.reported_at is not None and each.running.is_held_back:
                each.running.tally.hold_back(now - each.reported_at)
            each.reported_at = now
            answer = allowed.get(each.running.job.id)
            if answer is not None and self._hands.holds(each.running):
                self._apply(each, answer)

    def _in_turn(self) -> list[_Metered]:
        """The jobs, rotated by one each round: the first of a tenant's streams gets what its bucket has."""
        jobs = list(self._jobs.values())
        self._num_rounds += 1
        first = self._num_rounds % max(1, len(jobs))
        return jobs[first:] + jobs[:first]

    def _apply(self, each: _Metered, answer: Allowed) -> None:
        running = each.running
        if answer.spent:
            self._hands.stop(running, BudgetSpent.code, f"The budget of tokens for this {answer.spent} is used up.")
        elif each.is_paced:
            each.allowed = answer.tokens
            decided = pace(each.stream())
            running.limit = decided.limit
            if decided.is_paused and not running.is_paused:
                self._hands.pause(running)
            elif running.is_paused and not decided.is_paused:
                self._hands.resume(running)
            self._hands.news(running)  # more of what is held back may be appended now


def _is_due(each: _Metered, now: float) -> bool:
    return each.reported_at is None or each.ticket.is_metered or now - each.reported_at >= _RENEW_S
