"""Staggered retries: refused requests get increasing retry times, one after the other. No I/O, no clock.

Capacity becomes free one turn at a time. With the same retry time for all, refused clients would come back together and
all but one be refused again (a thundering herd), which would keep a busy gateway occupied with refusals.
"""

from collections import OrderedDict

_FARTHEST_S = 10.0
"""Longest retry time in seconds; the sequence starts over beyond it, because not every client comes back."""
_MOST_TENANTS = 10_000


class Stagger:
    """Retry times of one gateway's refusals, per tenant."""

    def __init__(self) -> None:
        self._promised: OrderedDict[str, float] = OrderedDict()
        """Latest retry time given to each tenant's clients (monotonic seconds), the most recent tenant last."""

    def next_s(self, tenant: str, vacancy_s: float, now: float) -> float:
        """Seconds that the next refused client waits when capacity becomes free every ``vacancy_s``: one interval after
        the last retry time given."""
        promised = max(self._promised.pop(tenant, now), now) + vacancy_s
        if promised > now + _FARTHEST_S:
            promised = now + vacancy_s  # start over, so that clients do not gather at the longest time
        self._promised[tenant] = promised
        if len(self._promised) > _MOST_TENANTS:
            self._promised.popitem(last=False)
        return promised - now
