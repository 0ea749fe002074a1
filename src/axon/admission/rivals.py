"""Tenants that compete for the same workers, as one gateway sees them; estimates a tenant's fair share. No I/O."""

from collections import OrderedDict

from axon.domain.tenants.account import Standing

_RECENT_S = 5.0


class Rivals:
    """Weights of the tenants that sent a request within the last few seconds. No I/O, no clock."""

    def __init__(self) -> None:
        self._weights: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.mean_work = 0.0
        """Mean tokens of a waiting turn, as last seen."""

    def share(self, tenant: str, weight: float, now: float) -> float:
        """Records a request of the tenant and returns its weight's share among all recent tenants, 0 to 1."""
        self._weights[tenant] = now, weight
        self._weights.move_to_end(tenant)
        while next(iter(self._weights.values()))[0] < now - _RECENT_S:
            self._weights.popitem(last=False)
        return weight / sum(each for _, each in self._weights.values())

    def saw(self, standing: Standing) -> None:
        """Records the state of the pool's account."""
        if standing.waiting:
            self.mean_work = standing.waiting_work / standing.waiting
