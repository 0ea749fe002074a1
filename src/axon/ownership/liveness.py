"""Liveness of a job's owner, by its lease and by its lifeline. After the service lost its memory, nobody is taken for
dead."""

from collections.abc import Collection

from axon.ports.live import Leases, Wakeups, lifeline
from axon.runtime.clock import Clock

_QUIET_LEASES = 3


class Liveness:
    """One process's view of which owners are alive."""

    def __init__(self, leases: Leases, clock: Clock, *, lease_s: float, wakeups: Wakeups | None = None) -> None:
        """Without ``wakeups`` no lifeline is looked at."""
        self._leases, self._clock, self._lease_s = leases, clock, lease_s
        self._wakeups = wakeups
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
        return asked if found == asked or await self._is_quiet() else found

    async def cut_off(self, owners: Collection[str]) -> frozenset[str]:
        """The subset of the owners whose lifeline is cut, although their lease may hold.

        That is a sign of death and no proof: to act on it takes another one, as that the queue has delivered a job of
        the owner's again. Epochs keep an owner that lives from writing what another one has claimed.
        """
        asked = sorted(frozenset(owners) - {""})
        if self._wakeups is None or not asked:
            return frozenset()
        counts = await self._wakeups.counts([lifeline(owner) for owner in asked])
        cut = frozenset(owner for owner, count in zip(asked, counts, strict=True) if count == 0)
        return frozenset() if not cut or await self._is_quiet() else cut

    async def _is_quiet(self) -> bool:
        """Whether the service has lost its memory lately, by its run id, so that what is missing says nothing."""
        run_id = await self._leases.run_id()
        now = self._clock.monotonic()
        if self._run_id is not None and run_id != self._run_id:
            self._quiet_until = now + _QUIET_LEASES * self._lease_s
        self._run_id = run_id
        return now < self._quiet_until

    async def look(self) -> None:
        """Records the lease service's run id, so that a later loss of memory is noticed."""
        await self.alive("nobody")
