"""The ticket of an admitted job. It travels in the job, so any process can renew and settle it."""

from dataclasses import dataclass
from datetime import UTC, datetime

from axon.domain.tenants.account import Bounds, Budget

_VERSION = "2"
_SEPARATOR = ";"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """Tokens set aside for a job, and its tenant's limits at admission, which apply until the job ends."""

    reserved: int = 0
    """Tokens set aside: the prompt's and the expected answer's."""
    expected: int = 0
    """Expected tokens of one answer of this tenant."""
    tokens_per_minute: float = 0.0
    tokens_per_day: int = 0
    tokens_per_month: int = 0
    fleet: str = ""
    """Account of the pool of workers that is to run it."""

    def __str__(self) -> str:
        numbers = (self.reserved, self.expected, self.tokens_per_minute, self.tokens_per_day, self.tokens_per_month)
        return _SEPARATOR.join([_VERSION, *(f"{number:.17g}" for number in numbers), self.fleet])

    @classmethod
    def parse(cls, text: str) -> "Ticket":
        """Parses a job's ticket; a ticket of another version gives one without limits."""
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
        """Whether a limit on tokens applies to the job."""
        return bool(self.tokens_per_minute or self.tokens_per_day or self.tokens_per_month)

    def bounds(self, now: float) -> Bounds:
        """The limits on tokens as bounds of an account."""
        return Bounds(
            tokens_per_minute=self.tokens_per_minute,
            budgets=budgets(now, per_day=self.tokens_per_day, per_month=self.tokens_per_month),
        )


def budgets(now: float, *, per_day: int, per_month: int) -> tuple[Budget, ...]:
    """The budgets that are set, each with its current window."""
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
    """Unix time at which a day or month began."""
    if name == "month":
        return datetime(window // 100, window % 100, 1, tzinfo=UTC).timestamp()
    return datetime(window // 10_000, window // 100 % 100, window % 100, tzinfo=UTC).timestamp()
