"""Who was served how much, as one worker knows it: what it last read, and what it has served itself since.

A virtual token counter for each tenant, after Sheng et al. (OSDI 2024): it rises by the tokens served over the weight,
and nobody's is below the level, the smallest counter of those who are here. So nobody saves up a claim while it idles,
and after a loss of all counters everybody begins at the same height. Pure: knows no service and no clock.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

LEVEL = ""
"""The name that the level goes under among the counters."""


class Served:
    """``charge`` as tokens come; ``take`` what others have not been told, and ``learn`` what they have told."""

    def __init__(self) -> None:
        self.level = 0.0
        """Never falls."""
        self._read: dict[str, float] = {}
        self._untold: defaultdict[str, float] = defaultdict(float)
        self._on_its_way: dict[str, float] = {}

    def of(self, tenant: str) -> float:
        """The tenant's counter by now."""
        since = self._untold.get(tenant, 0.0) + self._on_its_way.get(tenant, 0.0)
        return max(self._read.get(tenant, 0.0), self.level) + since

    def charge(self, tenant: str, amount: float) -> None:
        """The tenant was served here."""
        self._untold[tenant] += amount

    def take(self) -> Mapping[str, float]:
        """What is to be told to the others; it counts as on its way until something is learned."""
        for tenant, amount in self._on_its_way.items():  # what was not heard of last time is told again
            self._untold[tenant] += amount
        self._on_its_way, self._untold = dict(self._untold), defaultdict(float)
        return self._on_its_way

    def learn(self, counters: Mapping[str, float], *, active: Iterable[str]) -> None:
        """What the others and we have told so far; ``active`` are those who wait or run."""
        self._read, self._on_its_way = dict(counters), {}
        self.level = max(self.level, counters.get(LEVEL, 0.0))
        self.level = max(self.level, min((self._read.get(tenant, 0.0) for tenant in active), default=0.0))
