"""A tenant's rate limits and the line of turns as one request saw them, for its answer's headers. Decides nothing."""

from dataclasses import dataclass

from axon.admission.line import Line


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
        self.line = Line()
        """The line in which the request was admitted, itself included."""
        self.awaits_more = False
        """Whether it was admitted only because more workers are to start: it is likely to wait for longer than its tier
        promises."""

    def note(self, name: str, remaining: float, *, per_minute: float) -> None:
        """Records what remains in a bucket; a limit of 0 means unlimited and is not recorded."""
        if per_minute > 0:
            self.seen[name] = Meter(per_minute, remaining, (per_minute - remaining) / per_minute * 60)
