"""Starts of a deployment's workers as one gateway sees them: since when one is wanted, how long it may take, and who
waits. No I/O, no clock."""

from axon.admission.line import Line


class Starts:
    """What is known of the time until a deployment without a worker has one. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._seconds: dict[str, float] = {}
        self._wanted_since: float | None = None
        self.failed: frozenset[str] = frozenset()
        """Versions without a worker that could not be loaded when that was last tried."""

    def saw(self, pool: str, line: Line) -> None:
        """Records the line of a pool."""
        self._lines[pool] = line

    def measured(self, version: str, seconds: float) -> None:
        """Records how long the last start of a version took."""
        self._seconds[version] = seconds

    def is_measured(self, version: str) -> bool:
        """Whether a start of the version was ever measured."""
        return version in self._seconds

    def line(self, pool: str) -> Line:
        """The line of a pool as it was last seen."""
        return self._lines.get(pool, Line())

    @property
    def pools(self) -> frozenset[str]:
        """Pools whose lines have been seen."""
        return frozenset(self._lines)

    @property
    def num_waiting(self) -> int:
        """Turns that wait for the deployment, over all its pools."""
        return sum(line.waiting for line in self._lines.values())

    @property
    def is_wanted(self) -> bool:
        """Whether anybody waits for the deployment."""
        return self.num_waiting > 0

    def look(self, now: float, *, has_worker: bool, shall_run: bool) -> None:
        """Notes since when a worker is wanted that is not there: asked for by a turn, or because one always runs."""
        if has_worker or not (shall_run or self.is_wanted):
            self._wanted_since = None
        elif self._wanted_since is None:
            self._wanted_since = now

    def wanted_s(self, now: float) -> float:
        """Seconds for which a worker has been wanted; 0 while none is."""
        return 0.0 if self._wanted_since is None else now - self._wanted_since

    def remaining_s(self, version: str, now: float) -> float | None:
        """Seconds until the version is likely to have a worker; None if no start was measured, or if this one takes
        longer than the last."""
        seconds = self._seconds.get(version)
        return None if seconds is None or (left := seconds - self.wanted_s(now)) < 0 else left

    def is_in_time(self, version: str, patience_s: float, now: float) -> bool:
        """Whether a turn that is asked now may expect a worker within ``patience_s`` seconds: as far as known, and as
        long as the present start has not taken longer than that."""
        return self.wanted_s(now) <= patience_s and (self.remaining_s(version, now) or 0.0) <= patience_s
