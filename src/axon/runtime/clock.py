"""The clock, passed in wherever time is read, so that tests can control it."""

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Unix time in seconds, for timestamps that other processes read."""

    def monotonic(self) -> float:
        """Monotonic time in seconds, for durations and deadlines inside this process."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(slots=True)
class FakeClock:
    """A clock for tests that moves only by ``advance``."""

    time: float = 1_700_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds
