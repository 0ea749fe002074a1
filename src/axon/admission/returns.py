"""When those who were turned away for want of a place come back: one after the other, not all at once. Pure.

Places get free one by one. Told all the same time, a crowd that was turned away would come back together, and all but
one of it be turned away again, as often as places get free: a busy gateway would do little else.
"""

from collections import OrderedDict

_FARTHEST_S = 10.0
"""Not all of them come back: a place is not held free for longer."""
_MOST_TENANTS = 10_000


class Returns:
    """By tenant, as one gateway turns them away."""

    def __init__(self) -> None:
        self._promised: OrderedDict[str, float] = OrderedDict()
        """Until when those who were turned away have been told to wait, the tenant asked last at the end."""

    def next_s(self, tenant: str, place_s: float, now: float) -> float:
        """How long the next one is to wait where a place gets free every ``place_s``: until the one after all those
        that were promised already."""
        promised = max(self._promised.pop(tenant, now), now) + place_s
        if promised > now + _FARTHEST_S:
            promised = now + place_s  # from the beginning: not all at the same, farthest time
        self._promised[tenant] = promised
        if len(self._promised) > _MOST_TENANTS:
            self._promised.popitem(last=False)
        return promised - now
