"""Time as a value to pass in, so that tests can hold it."""

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Unix time: for stamps that other processes read."""

    def monotonic(self) -> float:
        """For durations in this process."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(slots=True)
class FakeClock:
    """A clock that stands until it is told to move."""

    time: float = 1_700_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds
