"""Embedded leases, by this process's clock. Knows no owner outside the process."""

import secrets
from collections.abc import Sequence

from axon.adapters.live.memory.expiring import Expiring
from axon.runtime.clock import Clock


class MemoryLeases:
    """A lease per owner."""

    def __init__(self, clock: Clock, *, max_owners: int = 10_000) -> None:
        self._leases: Expiring[str, None] = Expiring(clock, max_entries=max_owners)
        self._run_id = secrets.token_hex(8)

    async def hold(self, owner: str, ttl_s: float) -> None:
        self._leases.put(owner, None, ttl_s)

    async def alive(self, owners: Sequence[str]) -> frozenset[str]:
        return frozenset(owner for owner in owners if owner in self._leases)

    async def drop(self, owner: str) -> None:
        self._leases.pop(owner)

    async def run_id(self) -> str:
        return self._run_id

    def for_thread(self, *, deadline_s: float) -> None:
        """None: when this process stands still, so does everyone who reads its leases."""

    def lose_everything(self) -> None:
        """Simulates a restart of the service, for tests."""
        self._leases.clear()
        self._run_id = secrets.token_hex(8)
