"""Who else asks of the same workers, as one gateway sees it: enough to guess at a tenant's share. Asks nobody."""

from collections import OrderedDict

from axon.domain.account import Standing

_RECENT_S = 5.0


class Rivals:
    """Tenants that have asked just now, with their weights."""

    def __init__(self) -> None:
        self._weights: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.mean_work = 0.0
        """Tokens of a turn that waits, as last seen."""

    def share(self, tenant: str, weight: float, now: float) -> float:
        """The tenant asks: its part of the workers if all who asked lately do so for good."""
        self._weights[tenant] = now, weight
        self._weights.move_to_end(tenant)
        while next(iter(self._weights.values()))[0] < now - _RECENT_S:
            self._weights.popitem(last=False)
        return weight / sum(each for _, each in self._weights.values())

    def saw(self, standing: Standing) -> None:
        """How the workers' account stands."""
        if standing.waiting:
            self.mean_work = standing.waiting_work / standing.waiting
