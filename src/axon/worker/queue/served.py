"""Virtual token counters of the whole fleet, as one worker knows them: last read, plus served here since.

The level of the counters is stored among them. So after a loss of all counters everybody begins at the same height. No
I/O, no clock.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from axon.domain.fairness.virtual_counters import VirtualCounters

LEVEL = ""
"""The name under which the level is stored among the counters."""


class Served:
    """``charge`` as tokens are served; ``take`` what is to be added to the shared counters; ``learn`` their values."""

    def __init__(self) -> None:
        self._read = VirtualCounters()
        self._unsent: defaultdict[str, float] = defaultdict(float)
        self._in_flight: dict[str, float] = {}

    def of(self, tenant: str) -> float:
        """The tenant's counter, with what was served here since it was read."""
        since = self._unsent.get(tenant, 0.0) + self._in_flight.get(tenant, 0.0)
        return self._read.of(tenant) + since

    @property
    def level(self) -> float:
        """The floor of all counters, which never falls."""
        return self._read.level

    def charge(self, tenant: str, amount: float) -> None:
        """The tenant was served here; ``amount`` is its tokens over its weight."""
        self._unsent[tenant] += amount

    def take(self) -> Mapping[str, float]:
        """The amounts to add to the shared counters, which stay in flight until ``learn``, or are taken again."""
        for tenant, amount in self._in_flight.items():  # the last exchange failed
            self._unsent[tenant] += amount
        self._in_flight, self._unsent = dict(self._unsent), defaultdict(float)
        return self._in_flight

    def learn(self, counters: Mapping[str, float], *, active: Iterable[str]) -> None:
        """Takes over the shared counters; the smallest of the ``active`` tenants, who run or wait, lifts the level."""
        self._in_flight = {}
        self._read.replace(counters, level=counters.get(LEVEL, 0.0))
        self._read.raise_level(active)
