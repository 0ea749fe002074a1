"""Liveness of a job's owner, by its lease. After the lease service lost its memory, nobody is taken for dead."""

from collections.abc import Collection

from axon.ports.live import Leases
from axon.runtime.clock import Clock

_QUIET_LEASES = 3


class Liveness:
    """One process's view of which owners are alive."""

    def __init__(self, leases: Leases, clock: Clock, *, lease_s: float) -> None:
        self._leases, self._clock, self._lease_s = leases, clock, lease_s
        self._run_id: str | None = None
        self._quiet_until = 0.0

    async def alive(self, owner: str) -> bool:
        """Whether the owner's lease is valid, or may be: after a loss of memory, owners get a few lease times to
        renew."""
        return bool(await self.living({owner}))

    async def living(self, owners: Collection[str]) -> frozenset[str]:
        """The subset of the owners that are alive, asked for together; nobody, an empty name, is not."""
        asked = frozenset(owners) - {""}
        found = await self._leases.alive(sorted(asked)) if asked else asked
        if found == asked:
            return asked
        run_id = await self._leases.run_id()
        now = self._clock.monotonic()
        if self._run_id is not None and run_id != self._run_id:
            self._quiet_until = now + _QUIET_LEASES * self._lease_s
        self._run_id = run_id
        return asked if now < self._quiet_until else found

    async def look(self) -> None:
        """Records the lease service's run id, so that a later loss of memory is noticed."""
        await self.alive("nobody")
