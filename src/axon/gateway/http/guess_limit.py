"""A rate limit on wrong API keys per client address, kept in memory, so that guessing keys is slow. Knows no key."""

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address

from axon.errors import LimitReached
from axon.runtime.clock import Clock

_MAX_ADDRESSES = 10_000
"""Size of the LRU cache of buckets."""
_NETWORK_BITS = 64
"""IPv6 addresses are counted by this prefix, because a client usually controls all addresses of a /64 network."""


class GuessLimit:
    """A leaky bucket of wrong keys per address: it holds ``per_minute`` of them and leaks as many in a minute.

    A ``per_minute`` of 0 sets no limit.
    """

    def __init__(self, per_minute: float, clock: Clock) -> None:
        self._per_minute, self._clock = per_minute, clock
        self._failed: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Each network's bucket: its level, and the monotonic time in seconds at which it had that level."""

    def check(self, address: str) -> None:
        """Raises ``LimitReached`` if the address's bucket has no room for another wrong key."""
        over = self._level(_network(address)) - self._per_minute + 1 if self._per_minute else 0.0
        if over > 0:
            raise LimitReached(
                "Too many wrong API keys came from this address; try again later.",
                code="too_many_failures",
                retry_after_s=over * 60 / self._per_minute,
            )

    def note(self, address: str) -> None:
        """Counts one wrong key against the address."""
        network = _network(address)
        self._failed[network] = (self._level(network) + 1, self._clock.monotonic())
        self._failed.move_to_end(network)
        if len(self._failed) > _MAX_ADDRESSES:
            self._failed.popitem(last=False)

    def _level(self, network: str) -> float:
        """Returns the bucket's level now, in wrong keys."""
        level, at = self._failed.get(network, (0.0, 0.0))
        return max(0.0, level - (self._clock.monotonic() - at) * self._per_minute / 60)


def _network(address: str) -> str:
    """Returns the name under which an address is counted: itself, or the network of an IPv6 address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or int(parsed) >> (128 - _NETWORK_BITS))
    return str(parsed)
