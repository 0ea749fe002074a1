"""How often an address has sent keys that are none: a bound in memory, so that guessing costs. Knows no key."""

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address

from axon.errors import LimitReached
from axon.runtime.clock import Clock

_MAX_ADDRESSES = 10_000
_NETWORK_BITS = 64
"""Of an IPv6 address: whoever has one has its whole network."""


class GuessLimit:
    """A bucket of failures per address, refilled by the minute; 0 sets no limit."""

    def __init__(self, per_minute: float, clock: Clock) -> None:
        self._per_minute, self._clock = per_minute, clock
        self._failed: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Raises when the address has failed too often."""
        over = self._left(_network(address)) - self._per_minute + 1 if self._per_minute else 0.0
        if over > 0:
            raise LimitReached(
                "Too many wrong API keys came from this address; try again later.",
                code="too_many_failures",
                retry_after_s=over * 60 / self._per_minute,
            )

    def note(self, address: str) -> None:
        """One more."""
        network = _network(address)
        self._failed[network] = (self._left(network) + 1, self._clock.monotonic())
        self._failed.move_to_end(network)
        if len(self._failed) > _MAX_ADDRESSES:
            self._failed.popitem(last=False)

    def _left(self, network: str) -> float:
        """What is not yet forgiven."""
        num, at = self._failed.get(network, (0.0, 0.0))
        return max(0.0, num - (self._clock.monotonic() - at) * self._per_minute / 60)


def _network(address: str) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or int(parsed) >> (128 - _NETWORK_BITS))
    return str(parsed)
