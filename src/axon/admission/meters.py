"""State of a tenant's rate limits as one request saw it, for the ``x-ratelimit`` headers. Decides nothing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meter:
    """One rate limit: its size, what remains, and the seconds until it has refilled."""

    limit: float
    remaining: float
    reset_s: float


class Meters:
    """Meters by the limit's name; filled in while a request is admitted, read when it is answered."""

    def __init__(self) -> None:
        self.seen: dict[str, Meter] = {}

    def note(self, name: str, remaining: float, *, per_minute: float) -> None:
        """Records what remains in a bucket; a limit of 0 means unlimited and is not recorded."""
        if per_minute > 0:
            self.seen[name] = Meter(per_minute, remaining, (per_minute - remaining) / per_minute * 60)
