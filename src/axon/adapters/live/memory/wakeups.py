"""Embedded wakeups: notifications between tasks of one event loop; without a listener they are lost."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from axon.adapters.live.buffered_listener import BufferedListener


class _Relay:
    """A subscription that passes each payload on at once."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self.put = put

    def close(self) -> None:
        """Does nothing: a relay holds no timer."""


class MemoryWakeups:
    """A channel exists while it has a listener."""

    def __init__(self, *, max_waiting: int = 256) -> None:
        self._max_waiting = max_waiting
        self._channels: dict[str, dict[BufferedListener | _Relay, None]] = {}

    @property
    def num_channels(self) -> int:
        return len(self._channels)

    async def notify(self, channel: str, payload: bytes = b"") -> None:
        self.wake(channel, payload)

    def is_heard(self, channel: str) -> bool:
        """Whether anybody listens to the channel."""
        return channel in self._channels

    async def counts(self, channels: Sequence[str]) -> Sequence[int | None]:
        return [len(self._channels.get(channel, ())) for channel in channels]

    def wake(self, channel: str, payload: bytes = b"") -> None:
        """``notify`` for another embedded port in the same process."""
        for listener in self._channels.get(channel, ()):
            listener.put(payload)

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[BufferedListener]:
        listener = BufferedListener(self._max_waiting)
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

    def _leave(self, channel: str, listener: BufferedListener | _Relay) -> None:
        listeners = self._channels[channel]
        listeners.pop(listener, None)
        listener.close()
        if not listeners:
            del self._channels[channel]
