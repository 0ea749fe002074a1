"""Shares, fleet-wide: tells the others what was served here and learns what they have served. Takes nothing itself."""

import asyncio
from collections.abc import Callable, Collection

import structlog

from axon.domain.job import Job
from axon.domain.share import cost, effective_weight
from axon.domain.tenant import Tier
from axon.errors import AxonError
from axon.ports.live import Shares
from axon.worker.queue.served import LEVEL, Served

_EVERY_S = 0.2
_RETRY_S = 1.0

_logger = structlog.get_logger("axon.worker")


class Sharing:
    """Keeps the view of its pool's counters fresh. Without the service it goes on with what it serves itself."""

    def __init__(self, shares: Shares, pool: str, active: Callable[[], Collection[str]]) -> None:
        """``active``: the tenants that run or wait, as far as this worker knows."""
        self.served = Served()
        self._shares, self._pool, self._active = shares, pool, active
        self._told_level = 0.0
        self._charged = asyncio.Event()

    def charge(self, job: Job, *, prefilled: int = 0, cached: int = 0, emitted: int = 0) -> None:
        """The job was served these tokens."""
        amount = cost(prefilled=prefilled, cached=cached, emitted=emitted)
        self.served.charge(job.tenant, amount / effective_weight(job.weight, Tier.of(job.priority)))
        self._charged.set()

    async def run(self) -> None:
        """Tells and learns until cancelled; says nothing while nothing is served here."""
        while True:
            await self._charged.wait()
            self._charged.clear()
            try:
                await self.exchange()
                await asyncio.sleep(_EVERY_S)
            except AxonError as error:
                self._charged.set()
                _logger.warning("shares.not_exchanged", error=str(error))
                await asyncio.sleep(_RETRY_S)

    async def exchange(self) -> None:
        """One round."""
        served, active = self.served, self._active()
        amounts = served.take()
        if amounts or served.level > self._told_level:
            level = served.level
            await self._shares.charge(self._pool, {**amounts, LEVEL: 0.0}, floor=level)
            self._told_level = level
        asked = sorted({LEVEL, *active, *amounts})
        served.learn(await self._shares.counters(self._pool, asked), active=active)
