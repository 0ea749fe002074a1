"""How much is left of a tenant's limits, as one request has seen it. Decides nothing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meter:
    """One limit: its size, what is left of it, and when it is whole again if nothing more is asked."""

    limit: float
    remaining: float
    reset_s: float


class Meters:
    """Filled in while a request is admitted, read when it is answered; each limit by its name."""

    def __init__(self) -> None:
        self.seen: dict[str, Meter] = {}

    def note(self, name: str, remaining: float, *, per_minute: float) -> None:
        """What is left in a bucket of so much a minute; one without a limit is not told of."""
        if per_minute > 0:
            self.seen[name] = Meter(per_minute, remaining, (per_minute - remaining) / per_minute * 60)
