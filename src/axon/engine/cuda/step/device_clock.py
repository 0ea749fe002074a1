"""Measures when the device computed each batch, on the host's clock, only while steps are recorded. Launches no kernel.

CUDA events in the stream have the device's own times. The first event of a recording is waited for, and what the host's
clock shows then is taken for its time.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

from axon.engine.phases import Timeline, timeline


class Event(Protocol):
    """A CUDA event with a time."""

    def record(self) -> None: ...
    def synchronize(self) -> None: ...
    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this event to a later one."""


class DeviceClock:
    """``begin`` before a batch's first kernel, ``told`` behind its last one."""

    def __init__(self, make_event: Callable[[], Event] | None) -> None:
        """Without ``make_event``, as on a CPU, nothing is noted."""
        self._make_event = make_event
        self._recording: Timeline | None = None
        self._zero: Event | None = None
        self._zero_at = 0.0
        self._begun: Event | None = None

    def begin(self) -> None:
        """Notes where the batch begins; a second call for the same batch does nothing."""
        recording = timeline()
        if recording is None or self._make_event is None or self._begun is not None:
            return
        if recording is not self._recording:
            self._recording, self._zero = recording, self._make_event()
            self._zero.record()
            self._zero.synchronize()
            self._zero_at = time.perf_counter()
        self._begun = self._make_event()
        self._begun.record()

    def told(self, arrived: Callable[[], None]) -> Callable[[], None]:
        """``arrived``, which waits for the batch, and then tells the recording how long the device took."""
        begun, self._begun = self._begun, None
        if begun is None or self._make_event is None:
            return arrived
        ended, zero, zero_at, recording = self._make_event(), self._zero, self._zero_at, self._recording
        assert zero is not None
        assert recording is not None
        ended.record()

        def tell() -> None:
            arrived()
            ended.synchronize()
            start = zero_at + zero.elapsed_time(begun) / 1000
            recording.device_ran("batch", start, begun.elapsed_time(ended) / 1000)

        return tell
