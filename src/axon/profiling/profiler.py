"""Records profiles of this process, one at a time, in a daemon thread, so that the process may end meanwhile."""

import threading
from collections.abc import Callable, Mapping
from functools import partial

from axon.errors import AlreadyProfiled
from axon.profiling.memory import record_memory
from axon.profiling.profile import MAX_SECONDS, MIN_SECONDS, Kind, Profile
from axon.profiling.sampler import record_cpu

Begin = Callable[[float, threading.Event], Callable[[], Profile]]
"""Begins to record for some seconds, or until the event is set; returns a function that waits for the end and returns
the profile."""
Done = Callable[[Profile | BaseException], None]
"""Called in the recording thread with the profile, or with the error that prevented it."""

OF_ANY: Mapping[Kind, Begin] = {
    Kind.CPU: lambda seconds, stop: partial(record_cpu, seconds, stop),
    Kind.MEMORY: lambda seconds, stop: partial(record_memory, seconds, stop),
}
"""The kinds that every process can record."""


class Profiler:
    """At most one recording at a time; ``stop`` ends it early."""

    def __init__(self, kinds: Mapping[Kind, Begin] = OF_ANY) -> None:
        self._kinds = kinds
        self._lock = threading.Lock()
        self._stop = threading.Event()

    @property
    def is_on(self) -> bool:
        return self._lock.locked()

    def start(self, kind: Kind, seconds: float, done: Done) -> None:
        """Begins to record; raises ``AlreadyProfiled``, and ``KeyError`` for a kind that this process cannot record."""
        begin = self._kinds[kind]
        if not self._lock.acquire(blocking=False):
            raise AlreadyProfiled
        self._stop.clear()
        try:
            finish = begin(min(max(seconds, MIN_SECONDS), MAX_SECONDS), self._stop)
            threading.Thread(target=self._finish, args=(finish, done), name="profiler", daemon=True).start()
        except BaseException:
            self._lock.release()
            raise

    def stop(self) -> None:
        """Ends the recording that is on; ``done`` is called with what it has."""
        self._stop.set()

    def _finish(self, finish: Callable[[], Profile], done: Done) -> None:
        result: Profile | BaseException
        try:
            result = finish()
        except BaseException as error:  # passed to whoever asked, who waits for it
            result = error
        finally:
            self._lock.release()
        done(result)
