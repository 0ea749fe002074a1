"""A sampling profiler inside the process: looks at the stack of every thread many times a second.

It needs no right that the process lacks, such as ptrace. Each sample carries the processor time that its thread took
since the last one, so that the sums are the process's real times, and a thread that waits has next to none. Python
shows a thread's stack where it last gave up the interpreter's lock, or where it is in native code: which function of
several small ones ran is a good guess, not a proof.
"""

import os
import sys
import threading
import time
from types import FrameType

from axon.profiling.profile import CpuProfile
from axon.profiling.stack_table import StackTable
from axon.profiling.thread_times import ThreadTimes, name_of

HZ = 100
MAX_COST = 0.05
"""Greatest part of one core that the sampler takes; it samples more seldom where a sample costs more."""
NATIVE = "native threads"
SWITCH_S = 0.0005
"""How long a thread that runs may keep the interpreter's lock from the sampler. With Python's own 5 ms most short work
would be over when the sampler looks, and its time would be found at the place where the thread waits for more."""


def native_id_of(thread: threading.Thread) -> int | None:
    """The system's number of a thread. That of a forked process's main thread is still its parent's in Python 3.11."""
    if sys.platform == "linux" and thread is threading.main_thread():
        return os.getpid()
    return thread.native_id


class Sampler:
    """``sample`` at intervals, then ``result``; close it."""

    def __init__(self, table: StackTable | None = None) -> None:
        self._table = table or StackTable()
        self._times = ThreadTimes()
        self._own = threading.get_ident()
        self._began = time.monotonic()
        self._began_cost = time.thread_time()
        self._first = self._times.all()
        self._last = dict(self._first)
        self._python_ids: set[int] = set()
        self._rounds = 0

    def sample(self) -> None:
        """Looks at every thread but the caller's once."""
        frames = sys._current_frames()
        threads = {each.ident: (each.name, native_id_of(each)) for each in threading.enumerate()}
        for ident, frame in frames.items():
            if ident != self._own:
                self._look(*threads.get(ident, ("unnamed thread", None)), frame)
        self._rounds += 1

    def _look(self, name: str, native_id: int | None, frame: FrameType) -> None:
        cpu_us = 0
        if native_id is not None:
            self._python_ids.add(native_id)
            now = self._times.microseconds(native_id)
            if now is not None:
                cpu_us = max(0, now - self._last.get(native_id, 0))
                self._last[native_id] = now
        self._table.add(name, frame, cpu_us)

    def result(self) -> CpuProfile:
        """The profile since the begin, with the time of threads that run no Python."""
        own_id = threading.get_native_id()
        ends = self._times.all()
        for native_id, end in ends.items():
            cpu_us = end - self._first.get(native_id, 0)
            if native_id not in self._python_ids and native_id != own_id and cpu_us > 0:
                self._table.add_named((NATIVE, name_of(native_id)), cpu_us, self._rounds)
        frames, stacks = self._table.result()
        cpu_us = sum(end - self._first.get(native_id, 0) for native_id, end in ends.items())
        return CpuProfile(
            seconds=time.monotonic() - self._began,
            rounds=self._rounds,
            frames=frames,
            stacks=stacks,
            cpu_s=max(cpu_us, sum(each.cpu_us for each in stacks)) / 1e6,
            cost_s=time.thread_time() - self._began_cost,
            missed=self._table.missed,
        )

    def close(self) -> None:
        """Closes the files that it reads."""
        self._times.close()


def record_cpu(seconds: float, stop: threading.Event, *, hz: float = HZ) -> CpuProfile:
    """Samples all other threads for ``seconds``, or until ``stop`` is set."""
    sampler, interval_s = Sampler(), sys.getswitchinterval()
    sys.setswitchinterval(min(SWITCH_S, interval_s))
    try:
        due = time.monotonic()
        ends = due + seconds
        while due < ends and not stop.wait(max(0.0, due - time.monotonic())):
            cost_s = -time.thread_time()
            sampler.sample()
            cost_s += time.thread_time()
            # A round that is late, because the process held the lock, is not made up for.
            due = max(time.monotonic(), due + 1 / hz, due + cost_s / MAX_COST)
        stop.wait(max(0.0, ends - time.monotonic()))
        return sampler.result()
    finally:
        sys.setswitchinterval(interval_s)
        sampler.close()
