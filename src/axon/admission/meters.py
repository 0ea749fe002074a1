"""How much is left of a key's limits, as one request has seen it. Decides nothing."""

from dataclasses import dataclass

from axon.ports.live import Taken


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

    def note(self, name: str, taken: Taken, *, per_minute: float) -> None:
        """What a bucket of so much a minute has answered."""
        self.seen[name] = Meter(per_minute, taken.remaining, (per_minute - taken.remaining) / per_minute * 60)
