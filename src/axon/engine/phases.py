"""The phases of an engine's step: schedule, draft, prepare, forward, sample, settle, emit. Entering one costs one
comparison while nobody records.

One process runs one engine, so there is one present step. Its thread says which phase it enters; a recording, which is
switched on from another thread, notes the times.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import pairwise

from axon.profiling.profile import Phase, Step, StepsProfile

MAX_STEPS = 20_000
_LOOK_S = 0.05


class Timeline:
    """The steps of one recording. Only the engine's thread adds to it."""

    def __init__(self, max_steps: int = MAX_STEPS) -> None:
        self._max_steps = max_steps
        self._began = time.perf_counter()
        self._steps: list[Step] = []
        self._step_at: float | None = None
        """When the present step began; None between two steps."""
        self._marks: list[tuple[str, float]] = []
        self._device: list[Phase] = []
        self._is_held = False
        """Whether the present phase lasts whatever is entered; see ``within``."""

    @property
    def is_full(self) -> bool:
        return len(self._steps) >= self._max_steps

    def begin_step(self) -> None:
        """A step begins."""
        self._step_at, self._marks, self._device = time.perf_counter(), [], []

    def enter(self, phase: str) -> None:
        """The present step enters a phase, which lasts until the next one."""
        if self._step_at is not None and not self._is_held:
            self._marks.append((phase, time.perf_counter()))

    @contextmanager
    def hold(self, phase: str) -> Iterator[None]:
        """The present step stays in a phase until the block ends."""
        self.enter(phase)
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    def device_ran(self, phase: str, start: float, seconds: float) -> None:
        """The device computed from ``start`` on, which is a time of ``time.perf_counter``."""
        if self._step_at is not None:
            self._device.append(Phase(phase, self._us(start), round(1e6 * seconds)))

    def end_step(self, *, sequences: int, tokens: int) -> None:
        """The present step has ended; it computed ``tokens``, and so many sequences run now."""
        if self._step_at is None or self.is_full:
            return
        now = time.perf_counter()
        phases = [
            Phase(name, self._us(at), round(1e6 * (end - at)))
            for (name, at), (_, end) in pairwise([*self._marks, ("", now)])
        ]
        us = round(1e6 * (now - self._step_at))
        self._steps.append(Step(self._us(self._step_at), us, sequences, tokens, phases, self._device))
        self._step_at = None

    def result(self) -> StepsProfile:
        """The profile of the steps recorded so far."""
        seconds = time.perf_counter() - self._began
        return StepsProfile(pid=os.getpid(), seconds=seconds, steps=list(self._steps), is_cut=self.is_full)

    def _us(self, at: float) -> int:
        return max(0, round(1e6 * (at - self._began)))


_timeline: Timeline | None = None


def timeline() -> Timeline | None:
    """The recording that is on; None as a rule."""
    return _timeline


def enter(phase: str) -> None:
    """Says that the present step enters a phase."""
    recording = _timeline  # read once: the thread of the recording sets it to None at any moment
    if recording is not None:
        recording.enter(phase)


def within(phase: str) -> AbstractContextManager[None]:
    """Holds the present step in a phase: what is entered inside the block belongs to it."""
    recording = _timeline
    return nullcontext() if recording is None else recording.hold(phase)


def begin_steps(seconds: float, stop: threading.Event) -> Callable[[], StepsProfile]:
    """Records the steps of this process's engine from now on, for ``seconds``, until ``stop`` is set or there are
    enough. The function that it returns waits for that."""
    global _timeline
    _timeline = recording = Timeline()
    return partial(_finish, recording, time.monotonic() + seconds, stop)


def _finish(recording: Timeline, ends: float, stop: threading.Event) -> StepsProfile:
    global _timeline
    try:
        while (left_s := ends - time.monotonic()) > 0 and not recording.is_full:
            if stop.wait(min(_LOOK_S, left_s)):
                break
    finally:
        _timeline = None
    return recording.result()
