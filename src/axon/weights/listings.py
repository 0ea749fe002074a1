"""Listings of folders under way. On a disk that is away each may hang, and then a thread with it. Knows no model."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from axon.errors import AxonError
from axon.runtime.clock import Clock
from axon.weights.source import Listing
from axon.weights.threads import THREADS

_PATIENCE_S = 10.0
"""A listing that takes longer may hang for good."""


@dataclass(frozen=True, slots=True)
class _Look:
    """One listing of a folder, and the monotonic time at which it began."""

    found: Future[Listing]
    begun_at: float


class Listings:
    """Lists folders, each in few threads: whoever asks for one that is being listed waits for that, then looks anew.

    A listing may hang for good though its folder is there again. So another one begins beside it after a while, which
    doubles each time: a folder that is away for an hour holds ten threads.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._looks: dict[Path, list[_Look]] = {}

    async def listing(self, path: Path, look: Callable[[], Listing]) -> Listing:
        """What ``look``, which blocks, finds at the path, not earlier than now. Raises what it raises."""
        asked_at = self._clock.monotonic()
        while True:
            last = self._last(path, look)
            is_new = last.begun_at >= asked_at
            with nullcontext() if is_new else suppress(AxonError):
                found = await asyncio.shield(asyncio.wrap_future(last.found))
                if is_new:
                    return found

    def forget(self) -> None:
        """In a forked process: the threads that look are the parent's."""
        self._lock, self._looks = threading.RLock(), {}

    def _last(self, path: Path, look: Callable[[], Listing]) -> _Look:
        """The look at the folder that has begun last, or a new one where there is none or it may hang for good."""
        now = self._clock.monotonic()
        with self._lock:
            looks = self._looks.setdefault(path, [])
            if not looks or now - looks[-1].begun_at >= max(_PATIENCE_S, looks[-1].begun_at - looks[0].begun_at):
                looks.append(begun := _Look(THREADS.begin(look), now))
                begun.found.add_done_callback(lambda _: self._end(path, begun))
                return begun
            return looks[-1]

    def _end(self, path: Path, ended: _Look) -> None:
        with self._lock:
            looks = self._looks.get(path, [])
            if ended in looks:
                looks.remove(ended)
            if not looks:
                self._looks.pop(path, None)
