"""Exchanges virtual token counters with the other workers of the pool. Takes nothing off the queue itself."""

import asyncio
from collections.abc import Callable, Collection, Mapping

import structlog

from axon.domain.fairness.share import cost, effective_weight
from axon.domain.job import Job
from axon.domain.tenants.tenant import Tier
from axon.errors import AxonError
from axon.ports.live import Shares
from axon.worker.queue.neighbours import Neighbours
from axon.worker.queue.served import LEVEL, Served

_EVERY_S = 0.2
"""Least time between two exchanges."""
_RETRY_S = 1.0

_logger = structlog.get_logger("axon.worker")


class Sharing:
    """Keeps this worker's view of the counters fresh; while the service is away, it counts only what it serves."""

    def __init__(
        self, shares: Shares, pool: str, active: Callable[[], Collection[str]], neighbours: Neighbours | None = None
    ) -> None:
        """``active`` returns the tenants that run or wait, as far as this worker knows; ``neighbours`` are the
        deployments on the same cores."""
        self.served = Served()
        self._neighbours = neighbours
        self._shares, self._pool, self._active = shares, pool, active
        self._sent_level = 0.0
        self._charged = asyncio.Event()

    def charge(self, job: Job, *, prefilled: int = 0, cached: int = 0, emitted: int = 0) -> None:
        """Charges the job's tenant for these tokens."""
        amount = cost(prefilled=prefilled, cached=cached, emitted=emitted)
        self.served.charge(job.tenant, amount / effective_weight(job.weight, Tier.of(job.priority)))
        if self._neighbours is not None:
            self._neighbours.served(amount)
        self._charged.set()

    def worked(self, seconds: float) -> None:
        """The engine's step took this long."""
        if self._neighbours is not None:
            self._neighbours.worked(seconds)

    async def run(self) -> None:
        """Exchanges until cancelled, while anything is served here."""
        while True:
            await self._charged.wait()
            self._charged.clear()
            try:
                await self.exchange()
                await asyncio.sleep(_EVERY_S)
            except AxonError as error:
                self._charged.set()
                _logger.warning("shares.not_exchanged", error=str(error), retry_s=_RETRY_S)
                await asyncio.sleep(_RETRY_S)

    async def exchange(self) -> None:
        """Adds what was served here to the shared counters, and reads them."""
        served, active = self.served, self._active()
        amounts = served.take()
        asked = sorted({LEVEL, *active, *amounts})
        if amounts or served.level > self._sent_level:
            level = served.level
            found = await self._shares.charge(self._pool, {**amounts, LEVEL: 0.0}, floor=level, asked=asked)
            self._sent_level = level
        else:
            found = await self._shares.counters(self._pool, asked)
        served.learn(found, active=active)
        if self._neighbours is not None:
            await self._carry_over(self._neighbours, amounts, active)

    async def _carry_over(self, neighbours: Neighbours, amounts: Mapping[str, float], active: Collection[str]) -> None:
        """What is lost on the way makes the neighbours' counters too low, and the worker's own stay right."""
        try:
            await neighbours.exchange(amounts, active)
        except AxonError as error:
            _logger.warning("shares.not_carried_over", error=str(error))
