"""A listener on a channel of wake-ups: payloads wait in a bounded buffer for one task. Knows no service.

A stream's reader waits for every token, so waiting must be cheap: no task, lock or timeout of its own per payload. The
timer of an earlier wait stays and, if it fires before the present wait's deadline, is set again.
"""

import asyncio
from collections import deque


class BufferedListener:
    """One subscription, which buffers at most ``max_waiting`` payloads. One task at a time awaits ``next``."""

    def __init__(self, max_waiting: int) -> None:
        self._waiting: deque[bytes] = deque(maxlen=max_waiting)
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._deadline = 0.0
        """Time of the event loop at which the present wait ends without a payload."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def put(self, payload: bytes) -> None:
        """Buffers a payload and wakes the task that waits; beyond the bound the oldest payload is dropped."""
        self._waiting.append(payload)
        self._wake()

    async def next(self, timeout_s: float) -> bytes | None:
        """Returns the oldest payload; None after ``timeout_s`` seconds without one."""
        if not self._waiting:
            assert self._waiter is None or self._waiter.done(), "two tasks wait for one listener"
            self._deadline = self._loop.time() + timeout_s
            self._waiter = self._loop.create_future()
            if self._timer is None or self._timer_at > self._deadline:
                self._set_timer()
            await self._waiter
        return self._waiting.popleft() if self._waiting else None

    def close(self) -> None:
        """Cancels the timer; nobody waits any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        self.close()
        self._timer_at = self._deadline
        self._timer = self._loop.call_at(self._timer_at, self._look)

    def _look(self) -> None:
        """Ends the wait if its deadline has passed; a wait that began after the timer was set goes on."""
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        if self._loop.time() < self._deadline:
            self._set_timer()
        else:
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
