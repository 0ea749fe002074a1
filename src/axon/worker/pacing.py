"""What the jobs of a worker use of their tenants' limits, told while they run. Knows no limit itself."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from axon.admission.admission import Allowed, Pulse
from axon.admission.ticket import Ticket
from axon.errors import AxonError
from axon.runtime.clock import Clock
from axon.worker.running import Running

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


class Pacing:
    """``run`` until cancelled."""

    def __init__(self, *, worker: Holder, tickets: Tickets, clock: Clock) -> None:
        self._worker, self._tickets, self._clock = worker, tickets, clock
        self._told_at: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            try:
                await self.beat()
            except AxonError as error:
                _logger.warning("tickets.not_renewed", error=str(error))

    async def beat(self) -> None:
        """Tells of all jobs that are due, in one call."""
        if not self._worker.is_owner:
            return  # what it holds may be another's by now
        now = self._clock.monotonic()
        running = dict(self._worker.running)
        self._told_at = {job_id: at for job_id, at in self._told_at.items() if job_id in running}
        due = [each for each in running.values() if self._is_due(each, now)]
        if due:
            await self._tickets.beat([_pulse(each) for each in due])
            self._told_at |= {each.job.id: now for each in due}

    def _is_due(self, running: Running, now: float) -> bool:
        told_at = self._told_at.get(running.job.id)
        if told_at is None or Ticket.parse(running.job.ticket).is_metered:
            return True
        return now - told_at >= _RENEW_S


def _pulse(running: Running) -> Pulse:
    return Pulse(job=running.job, used=len(running.job.prompt_ids) + running.sent, waits=False)
