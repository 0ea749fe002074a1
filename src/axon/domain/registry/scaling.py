"""How a deployment is scaled: what its autoscaler aims at, what it may cost, and what it keeps by the clock.

Values of the registry and their clock; they know no load and decide nothing.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from math import floor, isfinite
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MINUTES = 24 * 60
_ROUNDING = 1e-9
"""0.3 an hour pays for three replicas of 0.1 each, whatever binary fractions say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A minimum by the clock: so many replicas at least between two times of the day, in a time zone."""

    replicas: int
    start: str = "00:00"
    """Local time at which it begins to hold, as HH:MM."""
    end: str = "24:00"
    """Local time at which it ends; one that is not after ``start`` is of the next day."""
    days: tuple[str, ...] = ()
    """Days of the week on which it begins, as ``mon``; empty for every day."""
    zone: str = "UTC"
    """Time zone by its name in the IANA database, such as ``Europe/Berlin``: summer time is followed."""

    def holds(self, at: float) -> bool:
        """Whether it holds at a Unix time. In a zone that this machine does not know it always holds: a replica too
        many does less harm than one too few."""
        zone = zone_of(self.zone)
        if zone is None or not isfinite(at):
            return zone is None
        local = datetime.fromtimestamp(at, zone)
        minute, day = 60 * local.hour + local.minute, local.weekday()
        start, end = minutes(self.start), minutes(self.end)
        if start is None or end is None:
            return True
        if start < end:
            return start <= minute < end and self._has(day)
        return (minute >= start and self._has(day)) or (minute < end and self._has(day - 1))

    def _has(self, day: int) -> bool:
        return not self.days or DAYS[day % len(DAYS)] in self.days


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """What a deployment's autoscaler aims at and may spend; 0 leaves a target to control's settings."""

    utilisation: float = 0.0
    """Part of the slots that shall be in use, 0.1 to 0.94: it may be 0.05 more or less."""
    target_wait_s: float = 0.0
    """Seconds in which a waiting request shall be taken."""
    ttft_target_s: float = 0.0
    """Seconds to the first token."""
    itl_target_s: float = 0.0
    """Seconds between two tokens."""
    price_per_h: float = 0.0
    """Price of one replica for an hour: for the ceiling, and for what tenants pay for replicas' time."""
    currency: str = "USD"
    """Currency of the price, three capital letters."""
    cost_per_h: float = 0.0
    """Ceiling of what its replicas may cost in an hour together; 0 for none."""
    floors: tuple[Window, ...] = ()
    """Minimums by the clock, beside ``min_replicas``; where several hold, the largest counts."""

    @property
    def payable(self) -> int | None:
        """Replicas that the ceiling in cost allows; None without a ceiling."""
        if not (self.cost_per_h > 0 and self.price_per_h > 0):
            return None
        return floor(min(1e6, self.cost_per_h / self.price_per_h + _ROUNDING))

    def least(self, at: float) -> int:
        """The largest minimum that holds by the clock at a Unix time."""
        return max((each.replicas for each in self.floors if each.holds(at)), default=0)


@cache
def zone_of(name: str) -> ZoneInfo | None:
    """The time zone of this name; None where this machine knows none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def minutes(text: str) -> int | None:
    """Minutes since midnight of a time as HH:MM, up to 24:00; None for any other text."""
    hour, colon, minute = text.partition(":")
    if not (colon and len(hour) == len(minute) == 2 and (hour + minute).isdecimal() and text.isascii()):
        return None
    found = 60 * int(hour) + int(minute)
    return found if int(minute) < 60 and found <= _DAY_MINUTES else None
