"""Embedded presences: announcements of this process's workers. Knows no worker outside the process."""

from collections.abc import Sequence

from axon.adapters.live.memory.expiring import Expiring
from axon.domain.presence import Presence
from axon.runtime.clock import Clock


class MemoryPresences:
    """A presence per deployment and worker."""

    def __init__(self, clock: Clock, *, max_workers: int = 10_000) -> None:
        self._clock, self._max_workers = clock, max_workers
        self._deployments: dict[str, Expiring[str, Presence]] = {}

    async def put(self, presence: Presence, *, ttl_s: float) -> bool:
        workers = self._workers(presence.deployment.name)
        holder = workers.get(presence.worker)
        if holder is not None and holder.incarnation != presence.incarnation:
            return False
        workers.put(presence.worker, presence, ttl_s)
        return True

    async def all(self, deployment: str) -> Sequence[Presence]:
        workers = self._workers(deployment)
        workers.sweep()
        return [presence for name in sorted(workers) if (presence := workers.get(name)) is not None]

    async def drop(self, presence: Presence) -> None:
        workers = self._workers(presence.deployment.name)
        holder = workers.get(presence.worker)
        if holder is not None and holder.incarnation == presence.incarnation:
            workers.pop(presence.worker)

    def lose_everything(self) -> None:
        """Simulates a restart of the service, for tests."""
        self._deployments.clear()

    def _workers(self, deployment: str) -> Expiring[str, Presence]:
        made: Expiring[str, Presence] = Expiring(self._clock, max_entries=self._max_workers)
        return self._deployments.setdefault(deployment, made)
