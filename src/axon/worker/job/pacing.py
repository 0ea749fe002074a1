"""What the jobs of a worker use of their tenants' limits, told while they run; and at which pace they may go on.

Decides nothing: admission knows the limits, ``allowance`` what follows from them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from axon.admission.admission import Allowed, Pulse
from axon.admission.ticket import Ticket
from axon.errors import AxonError, BudgetSpent
from axon.runtime.clock import Clock
from axon.telemetry.metrics import Metrics
from axon.worker.job.allowance import Stream, pace
from axon.worker.job.running import Running

_TICK_S = 0.2
_RENEW_S = 1.0
"""How often jobs whose tokens nobody counts are told of."""

_logger = structlog.get_logger("axon.worker")


class Tickets(Protocol):
    """Admission, as a worker needs it."""

    async def beat(self, pulses: Sequence[Pulse]) -> Mapping[str, Allowed]: ...


class Holder(Protocol):
    """The worker, as the pacing needs it."""

    @property
    def running(self) -> Mapping[str, Running]: ...

    @property
    def is_owner(self) -> bool:
        """Whether what it holds is its own by its own clock."""

    def holds(self, running: Running) -> bool: ...

    def release(self, running: Running) -> None:
        """More of it may be told."""

    def pause(self, running: Running, *, paused: bool) -> None:
        """Out of the engine, or back into it."""

    def stop(self, running: Running, code: str, message: str) -> None:
        """Ends the job with what it has said."""


class _Metered:
    """A running job whose tokens are counted."""

    def __init__(self, running: Running, ticket: Ticket) -> None:
        self.running, self.ticket = running, ticket
        self.told_at: float | None = None
        self.allowed = float(ticket.reserved)
        if ticket.tokens_per_minute:
            self.allowed = min(self.allowed, ticket.tokens_per_minute)
        self._made = 0

    @property
    def is_paced(self) -> bool:
        return self.ticket.tokens_per_minute > 0

    def stream(self) -> Stream:
        running = self.running
        return Stream(
            prompt=running.job.num_prompt_tokens,
            allowed=self.allowed,
            told=running.sent,
            made=len(running.tokens),
            recent=max(0, len(running.tokens) - self._made),
            is_over=running.terminal is not None,
            is_paused=running.is_paused,
        )

    def pulse(self) -> Pulse:
        running = self.running
        more = pace(self.stream()).more if self.is_paced else 0
        self._made = len(running.tokens)
        return Pulse(job=running.job, used=running.job.num_prompt_tokens + running.sent, more=more, waits=False)


class Pacing:
    """``run`` until cancelled; every job that comes in is told of by ``begin``."""

    def __init__(self, *, worker: Holder, tickets: Tickets, clock: Clock, metrics: Metrics) -> None:
        self._worker, self._tickets = worker, tickets
        self._clock, self._metrics = clock, metrics
        self._jobs: dict[str, _Metered] = {}
        self._num_rounds = 0

    def begin(self, running: Running) -> None:
        """A new attempt: what its ticket sets aside may be told, until more is known."""
        metered = self._jobs[running.job.id] = _Metered(running, Ticket.parse(running.job.ticket))
        if metered.is_paced:
            running.limit = pace(metered.stream()).limit

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            try:
                await self.beat()
            except AxonError as error:
                _logger.warning("tickets.not_renewed", error=str(error))

    async def beat(self) -> None:
        """Tells of all jobs that are due, in one call, and heeds the answer."""
        self._jobs = {job_id: each for job_id, each in self._jobs.items() if self._worker.holds(each.running)}
        self._metrics.paced.set(sum(each.running.is_held for each in self._jobs.values()))
        if not self._worker.is_owner:
            return  # what it holds may be another's by now
        now = self._clock.monotonic()
        due = [each for each in self._in_turn() if _is_due(each, now)]
        if not due:
            return
        allowed = await self._tickets.beat([each.pulse() for each in due])
        for each in due:
            if each.told_at is not None and each.running.is_held:
                each.running.tally.pace(now - each.told_at)
            each.told_at = now
            answer = allowed.get(each.running.job.id)
            if answer is not None and self._worker.holds(each.running):
                self._heed(each, answer)

    def _in_turn(self) -> list[_Metered]:
        """Another one first each time: the first of a tenant's streams gets what its bucket has."""
        jobs = list(self._jobs.values())
        self._num_rounds += 1
        first = self._num_rounds % max(1, len(jobs))
        return jobs[first:] + jobs[:first]

    def _heed(self, each: _Metered, answer: Allowed) -> None:
        running = each.running
        if answer.spent:
            self._worker.stop(running, BudgetSpent.code, f"The budget of tokens for this {answer.spent} is used up.")
        elif each.is_paced:
            each.allowed = answer.tokens
            decided = pace(each.stream())
            running.limit = decided.limit
            if decided.is_paused != running.is_paused:
                self._worker.pause(running, paused=decided.is_paused)
            self._worker.release(running)


def _is_due(each: _Metered, now: float) -> bool:
    return each.told_at is None or each.ticket.is_metered or now - each.told_at >= _RENEW_S
