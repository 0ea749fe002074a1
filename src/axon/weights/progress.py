"""How far a fetch is: bytes, rate and time left. Shows nothing itself."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from axon.runtime.clock import Clock

_WINDOW_S = 10.0
"""The rate is that of the last seconds: a connection's speed changes."""
_EVERY_S = 0.1
Stage = Literal["fetching", "waiting", "checking"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One moment of a fetch."""

    stage: Stage
    """``waiting``: another process fetches the same files, and this is how far it is."""
    done_bytes: int
    total_bytes: int
    rate: float = 0.0
    """Bytes per second of the last ten seconds."""

    @property
    def left_s(self) -> float | None:
        """Seconds that are left at this rate; None while nobody can tell."""
        return (self.total_bytes - self.done_bytes) / self.rate if self.rate > 0 else None


OnProgress = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """For callers who show nothing."""


class Meter:
    """Counts bytes and calls back at most ten times a second, and at the end."""

    def __init__(self, stage: Stage, *, done: int, total: int, clock: Clock, on_progress: OnProgress) -> None:
        self._stage: Stage = stage
        self._done, self._total = done, total
        self._clock, self._on_progress = clock, on_progress
        self._samples: deque[tuple[float, int]] = deque([(clock.monotonic(), done)])
        on_progress(self.progress())

    def add(self, num_bytes: int) -> None:
        """Counts bytes; a negative number takes back what turned out wrong."""
        self.at(self._done + num_bytes)

    def at(self, done: int) -> None:
        """Sets the count."""
        self._done, now = done, self._clock.monotonic()
        if now - self._samples[-1][0] >= _EVERY_S or done >= self._total:
            self._samples.append((now, done))
            while now - self._samples[0][0] > _WINDOW_S and len(self._samples) > 2:
                self._samples.popleft()
            self._on_progress(self.progress())

    def progress(self) -> Progress:
        (begun, before), (now, _) = self._samples[0], self._samples[-1]
        rate = max(0.0, (self._samples[-1][1] - before) / (now - begun)) if now > begun else 0.0
        return Progress(stage=self._stage, done_bytes=self._done, total_bytes=self._total, rate=rate)
