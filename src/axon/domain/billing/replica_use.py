"""Time of replicas that somebody pays for: starts from cold, and pools that belong to a tenant. Values only.

A record has the price that held when it began, as a turn has: a later price changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum

from axon.domain.billing.cost import NANOS, Amount

_HOUR_S = 3600


class UseKind(StrEnum):
    """Why somebody pays for a replica's time."""

    COLD_START = "cold_start"
    """The replica was started because the tenant's request waited for a cold deployment; its time until it is ready."""
    DEDICATED = "dedicated"
    """The replica runs in a pool that is the tenant's own; all its time, or the tenant's part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaUse:
    """Seconds of one replica that a tenant pays for. Written again with more seconds while it goes on."""

    id: str
    """The same for the same time of the same replica, whoever writes it."""
    kind: UseKind
    tenant: str
    deployment: str
    version: str
    pool: str = ""
    at: float
    """Unix time at which it began; the use counts on that day."""
    seconds: float
    price_nanos: int = 0
    """Price of a replica hour when it began, in nanos of the currency's unit; 0 where the deployment has none."""
    currency: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSum:
    """Sum of the replicas' time that a tenant pays for."""

    cold_starts: int = 0
    cold_start_s: float = 0.0
    dedicated_s: float = 0.0
    costs: tuple[Amount, ...] = ()
    """What it costs, one amount for each currency, sorted by it; empty where no replica had a price."""

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.cold_starts or self.dedicated_s)

    def shown(self) -> dict[str, object]:
        """The sum in JSON, seconds to the millisecond."""
        return {
            "cold_starts": self.cold_starts,
            "cold_start_s": round(self.cold_start_s, 3),
            "dedicated_s": round(self.dedicated_s, 3),
            "costs": [amount.shown() for amount in self.costs],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UseGroup:
    """Uses of one kind and price, added up."""

    kind: UseKind
    num: int
    seconds: float
    price_nanos: int
    currency: str


def summed(groups: Iterable[UseGroup]) -> ReplicaSum:
    """One sum over uses of several kinds and prices; an amount is rounded once for each price."""
    starts, start_s, dedicated_s, nanos = 0, 0.0, 0.0, dict[str, int]()
    for each in groups:
        if each.kind is UseKind.COLD_START:
            starts, start_s = starts + each.num, start_s + each.seconds
        else:
            dedicated_s += each.seconds
        if each.currency:
            nanos[each.currency] = nanos.get(each.currency, 0) + _cost_nanos(each.seconds, each.price_nanos)
    costs = tuple(Amount.of(total, currency) for currency, total in sorted(nanos.items()))
    return ReplicaSum(cold_starts=starts, cold_start_s=start_s, dedicated_s=dedicated_s, costs=costs)


def price_nanos(price_per_h: float) -> int:
    """The price as it was written in decimals, not as the binary number next to it."""
    return int((Decimal(str(price_per_h)) * NANOS).to_integral_value(ROUND_HALF_UP))


def _cost_nanos(seconds: float, price: int) -> int:
    millis = round(seconds * 1000)
    return (millis * price + _HOUR_S * 500) // (_HOUR_S * 1000)
