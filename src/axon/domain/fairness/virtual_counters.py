"""Virtual token counters (VTC) of tenants, for fair queueing on the way to a worker and inside its engine.

After Sheng et al., OSDI 2024: a tenant's counter rises by the tokens that it was served over its weight, and the
smallest counter goes first. No counter is below the level, the smallest counter of the active tenants, so that an idle
tenant saves up no claim to the whole machine. No I/O, no clock.
"""

from collections.abc import Collection, Iterable, Mapping


class VirtualCounters:
    """The counters of tenants, in tokens over weight, and their level, which never falls."""

    def __init__(self) -> None:
        self.level = 0.0
        self._counters: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._counters)

    def of(self, tenant: str) -> float:
        """The tenant's counter, which is at least the level."""
        counter = self._counters.get(tenant, 0.0)
        return counter if counter > self.level else self.level

    def charge(self, tenant: str, amount: float) -> None:
        """Raises the tenant's counter by ``amount``, its tokens over its weight."""
        self._counters[tenant] = self.of(tenant) + amount

    def lift(self, tenant: str, least: float = 0.0) -> None:
        """Lifts the tenant's counter to the level, and to at least ``least``."""
        self._counters[tenant] = max(self.of(tenant), least)

    def replace(self, counters: Mapping[str, float], *, level: float = 0.0) -> None:
        """Takes over counters that were read elsewhere; ``level`` lifts the level, if it is higher."""
        self._counters = dict(counters)
        self.level = max(self.level, level)

    def raise_level(self, active: Iterable[str]) -> None:
        """Raises the level to the smallest counter of the ``active`` tenants."""
        self.level = min(map(self.of, active), default=self.level)

    def forget(self, active: Collection[str]) -> None:
        """Forgets idle tenants whose counter is not above the level: on return they would be lifted to it anyway."""
        for tenant in [each for each in self._counters if each not in active]:
            if self._counters[tenant] <= self.level:
                del self._counters[tenant]
