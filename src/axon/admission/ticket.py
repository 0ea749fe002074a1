"""Admission's yes, as it travels in the job: what is set aside, and all it takes to renew and settle it anywhere."""

from dataclasses import dataclass
from datetime import UTC, datetime

from axon.domain.account import Bounds, Budget

_VERSION = "2"
_SEPARATOR = ";"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A tenant's limits as they were when it was let in: they hold for the job to its end."""

    reserved: int = 0
    """Tokens set aside: the prompt's and those that its answer is expected to have."""
    expected: int = 0
    """Tokens that an answer of this tenant's has, as far as is known."""
    tokens_per_minute: float = 0.0
    tokens_per_day: int = 0
    tokens_per_month: int = 0
    fleet: str = ""
    """The account of the workers that are to run it."""

    def __str__(self) -> str:
        numbers = (self.reserved, self.expected, self.tokens_per_minute, self.tokens_per_day, self.tokens_per_month)
        return _SEPARATOR.join([_VERSION, *(f"{number:.17g}" for number in numbers), self.fleet])

    @classmethod
    def parse(cls, text: str) -> "Ticket":
        """The ticket that a job carries; one of another version limits nothing."""
        parts = text.split(_SEPARATOR, 6)
        if len(parts) != 7 or parts[0] != _VERSION:
            return cls()
        reserved, expected, per_minute, per_day, per_month = (float(part) for part in parts[1:6])
        return cls(
            reserved=int(reserved),
            expected=int(expected),
            tokens_per_minute=per_minute,
            tokens_per_day=int(per_day),
            tokens_per_month=int(per_month),
            fleet=parts[6],
        )

    @property
    def is_metered(self) -> bool:
        """Whether its tokens are counted while they come."""
        return bool(self.tokens_per_minute or self.tokens_per_day or self.tokens_per_month)

    def bounds(self, now: float) -> Bounds:
        """Of its tokens."""
        return Bounds(
            tokens_per_minute=self.tokens_per_minute,
            budgets=budgets(now, per_day=self.tokens_per_day, per_month=self.tokens_per_month),
        )


def budgets(now: float, *, per_day: int, per_month: int) -> tuple[Budget, ...]:
    """Those that are set, each in its window of now."""
    day, month = windows(now)
    found = []
    if per_day:
        found.append(Budget(name="day", window=day, limit=per_day))
    if per_month:
        found.append(Budget(name="month", window=month, limit=per_month))
    return tuple(found)


def windows(now: float) -> tuple[int, int]:
    """The day and the month of a time, in UTC: 20261115 and 202611."""
    date = datetime.fromtimestamp(now, UTC)
    return date.year * 10_000 + date.month * 100 + date.day, date.year * 100 + date.month


def window_start(name: str, window: int) -> float:
    """When a day or month began."""
    if name == "month":
        return datetime(window // 100, window % 100, 1, tzinfo=UTC).timestamp()
    return datetime(window // 10_000, window // 100 % 100, window % 100, tzinfo=UTC).timestamp()
