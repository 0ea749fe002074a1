"""Embedded wakeups: notifications between tasks of one event loop; without a listener they are lost."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class MemoryListener:
    """One subscription, which buffers at most ``max_waiting`` payloads."""

    def __init__(self, max_waiting: int) -> None:
        self._waiting: deque[bytes] = deque(maxlen=max_waiting)
        self._ready = asyncio.Event()

    def put(self, payload: bytes) -> None:
        """Adds a payload; beyond the bound, the oldest is lost."""
        self._waiting.append(payload)
        self._ready.set()

    async def next(self, timeout_s: float) -> bytes | None:
        if self._waiting:
            return self._waiting.popleft()
        try:
            async with asyncio.timeout(timeout_s):
                while not self._waiting:
                    self._ready.clear()
                    await self._ready.wait()
        except TimeoutError:
            return None
        return self._waiting.popleft()


class _Relay:
    """A subscription that passes each payload on at once."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self.put = put


class MemoryWakeups:
    """A channel exists while it has a listener."""

    def __init__(self, *, max_waiting: int = 256) -> None:
        self._max_waiting = max_waiting
        self._channels: dict[str, dict[MemoryListener | _Relay, None]] = {}

    @property
    def num_channels(self) -> int:
        return len(self._channels)

    async def notify(self, channel: str, payload: bytes = b"") -> None:
        self.wake(channel, payload)

    def is_heard(self, channel: str) -> bool:
        """Whether anybody listens to the channel."""
        return channel in self._channels

    def wake(self, channel: str, payload: bytes = b"") -> None:
        """``notify`` for another embedded port in the same process."""
        for listener in self._channels.get(channel, ()):
            listener.put(payload)

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[MemoryListener]:
        listener = MemoryListener(self._max_waiting)
        self._channels.setdefault(channel, {})[listener] = None
        try:
            yield listener
        finally:
            self._leave(channel, listener)

    def relay(self, channel: str, put: Callable[[bytes], None]) -> Callable[[], None]:
        """Calls ``put`` with each payload of the channel, until the returned function is called."""
        listener = _Relay(put)
        self._channels.setdefault(channel, {})[listener] = None
        return lambda: self._leave(channel, listener)

    def _leave(self, channel: str, listener: MemoryListener | _Relay) -> None:
        listeners = self._channels[channel]
        listeners.pop(listener, None)
        if not listeners:
            del self._channels[channel]
