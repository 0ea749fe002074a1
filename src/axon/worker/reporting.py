"""Shows in the metrics what no event of the worker brings along: its lease, and the deliveries that it holds."""

import asyncio
from collections.abc import Callable

from axon.runtime.clock import Clock
from axon.telemetry.engine_report import WorkerLabels
from axon.telemetry.metrics import Metrics
from axon.worker.lease import Lease
from axon.worker.queue.parked import Parked

_EVERY_S = 1.0


class Reporting:
    """``run`` once the worker's version is known; ``look`` shows one state."""

    def __init__(
        self,
        who: Callable[[], WorkerLabels],
        parked: Parked,
        lease: Lease,
        metrics: Metrics,
        clock: Clock,
        *,
        pool: str = "",
    ) -> None:
        self._who, self._parked, self._lease = who, parked, lease
        self._metrics, self._clock, self._pool = metrics, clock, pool

    async def run(self) -> None:
        """Looks once a second until cancelled; a worker that has left is not shown any more."""
        who, fleet = self._who(), self._metrics.fleet
        fleet.info.labels(*who, self._pool).set(1)
        try:
            while True:
                self.look()
                await asyncio.sleep(_EVERY_S)
        finally:
            fleet.info.remove(*who, self._pool)
            fleet.lease_age.remove(who.worker)
            self._metrics.queue.held.remove(*who)

    def look(self) -> None:
        """Shows the age of the lease and the number of parked deliveries."""
        who = self._who()
        age_s = max(0.0, self._clock.monotonic() - self._lease.renewed_at)
        self._metrics.fleet.lease_age.labels(who.worker).set(age_s)
        self._metrics.queue.held.labels(*who).set(len(self._parked))
