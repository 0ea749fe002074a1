"""This incarnation's sign of life: taken, renewed, and by its own clock known to hold. Knows no job."""

import asyncio
import contextlib

from axon.dispatch.liveness import Liveness
from axon.errors import AxonError
from axon.ports.live import Leases
from axon.runtime.clock import Clock
from axon.worker.config import WorkerConfig


class Lease:
    """Renewed by a task of its worker's loop."""

    def __init__(self, owner: str, leases: Leases, liveness: Liveness, config: WorkerConfig, clock: Clock) -> None:
        self._owner, self._leases, self._liveness = owner, leases, liveness
        self._config, self._clock = config, clock
        self._until = 0.0

    @property
    def holds(self) -> bool:
        """Whether nobody can have taken us for dead, by our own clock alone."""
        return self._clock.monotonic() < self._until

    async def open(self) -> None:
        """Takes the lease."""
        await self._hold()

    async def run(self) -> None:
        """Renews until cancelled."""
        while True:
            with contextlib.suppress(AxonError):
                await self._hold()
            await asyncio.sleep(self._config.renew_s)

    async def aclose(self) -> None:
        """Ends the lease now, so that nobody waits for it to lapse."""
        await self._leases.drop(self._owner)

    async def _hold(self) -> None:
        asked_at = self._clock.monotonic()
        await self._leases.hold(self._owner, self._config.lease_s)
        self._until = asked_at + self._config.lease_s
        await self._liveness.look()
