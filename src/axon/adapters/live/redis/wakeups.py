"""The wakeups on Redis Pub/Sub: one connection carries every channel with a listener. Knows no payload.

One task owns the connection. After a loss it connects and subscribes again, and every listener gets an empty payload,
because a notification may have been missed.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import structlog
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError

from axon.adapters.live.buffered_listener import BufferedListener
from axon.adapters.live.redis.arrivals import arrivals
from axon.adapters.live.redis.client import RedisClient
from axon.adapters.live.redis.driver_errors import DRIVER_ERRORS
from axon.runtime.clock import Clock, SystemClock
from axon.runtime.tasks import race

_logger = structlog.get_logger("axon.live")

_RECONNECT_S = 0.2


@dataclass(slots=True, eq=False)
class _Channel:
    """A channel's listeners, and the state of its subscription on this connection."""

    listeners: set[BufferedListener] = field(default_factory=set)
    is_sent: bool = False
    """Whether the last command sent for it was a subscription."""
    num_unconfirmed: int = 0
    was_cut: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether the server has confirmed the subscription."""

    def wake(self, payload: bytes) -> None:
        for listener in self.listeners:
            listener.put(payload)


class RedisWakeups:
    """A listener buffers at most ``max_waiting`` payloads; the oldest are dropped."""

    def __init__(self, client: RedisClient, *, max_waiting: int = 256, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._max_waiting = max_waiting
        self._channels: dict[bytes, _Channel] = {}
        self._changed: set[bytes] = set()
        self._has_changed = asyncio.Event()
        self._has_heard = False
        self._is_cut_off = False
        self._task: asyncio.Task[None] | None = None

    @property
    def num_channels(self) -> int:
        return len(self._channels)

    def open(self) -> None:
        """Starts the task that holds the connection."""
        self._task = asyncio.create_task(self._stay_connected(), name="live-wakeups")

    async def aclose(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def notify(self, channel: str, payload: bytes = b"") -> None:
        await self._client.call("PUBLISH", self._client.channel(channel), payload)

    async def counts(self, channels: Sequence[str]) -> Sequence[int | None]:
        if self._client.has_slots or not channels:
            return [None] * len(channels)  # a cluster's node knows its own listeners alone
        answer = await self._client.call("PUBSUB", "NUMSUB", *map(self._client.channel, channels))
        return list(answer[1::2])

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[BufferedListener]:
        name = self._client.channel(channel).encode()
        entry = self._channels.setdefault(name, _Channel())
        listener = BufferedListener(self._max_waiting)
        entry.listeners.add(listener)
        try:
            if not entry.is_sent:
                self._change(name)
            async with self._client.deadline():
                await entry.ready.wait()
            yield listener
        finally:
            entry.listeners.discard(listener)
            listener.close()
            if not entry.listeners and entry.is_sent:
                self._change(name)
            self._forget(name, entry)

    def _change(self, *names: bytes) -> None:
        self._changed.update(names)
        self._has_changed.set()

    async def _stay_connected(self) -> None:
        while True:
            try:
                await self._serve()
            except DRIVER_ERRORS as error:
                self._note(error)
            await asyncio.sleep(_RECONNECT_S)

    def _note(self, error: Exception) -> None:
        """Logs the outage, once."""
        if not self._is_cut_off:
            _logger.warning("wakeups.cut_off", error=str(error), next="connects again")
        self._is_cut_off = True

    async def _serve(self) -> None:
        """Connects, subscribes, and runs until the connection fails."""
        connection = await self._client.connect()
        try:
            self._has_heard = True
            self._is_cut_off = False
            self._change(*self._channels)
            await _first_failure(self._read(connection), self._write(connection))
        finally:
            self._cut()
            await connection.disconnect(nowait=True)

    async def _read(self, connection: AbstractConnection) -> None:
        async for messages in arrivals(connection):
            self._has_heard = True
            for message in messages:
                match message:
                    case [b"message", name, payload]:
                        if channel := self._channels.get(name):
                            channel.wake(payload)
                    case [b"subscribe", name, _]:
                        self._confirm(name)

    async def _write(self, connection: AbstractConnection) -> None:
        """Sends changed subscriptions, and pings regularly, because a dead connection may not be reported."""
        ping_every_s = self._client.deadline_s / 2
        ping_at = self._clock.monotonic() + ping_every_s
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(ping_at - self._clock.monotonic()):
                    await self._has_changed.wait()
            commands = self._changes()
            if self._clock.monotonic() >= ping_at:
                if not self._has_heard:
                    raise ConnectionError("The server is silent.")
                self._has_heard = False
                commands.append([b"PING"])
                ping_at = self._clock.monotonic() + ping_every_s
            async with asyncio.timeout(self._client.deadline_s):
                await connection.send_packed_command(connection.pack_commands(commands))

    def _changes(self) -> list[list[bytes]]:
        """The commands that make the server's subscriptions match the listeners."""
        joined, left = [b"SUBSCRIBE"], [b"UNSUBSCRIBE"]
        changed, self._changed = self._changed, set()
        for name in changed:
            channel = self._channels.get(name)
            if channel is None:
                continue
            if channel.listeners and not channel.is_sent:
                channel.is_sent = True
                channel.num_unconfirmed += 1
                joined.append(name)
            elif not channel.listeners:
                if channel.is_sent:
                    left.append(name)
                channel.is_sent = False
                channel.ready.clear()
                self._forget(name, channel)
        self._has_changed.clear()
        return [command for command in (left, joined) if len(command) > 1]

    def _confirm(self, name: bytes) -> None:
        """Handles a confirmation; a channel left and joined again counts as subscribed after the last one only."""
        channel = self._channels.get(name)
        if channel is None:
            return
        channel.num_unconfirmed -= 1
        if channel.num_unconfirmed == 0 and channel.is_sent:
            channel.ready.set()
            if channel.was_cut:
                channel.was_cut = False
                channel.wake(b"")
        else:
            self._forget(name, channel)

    def _cut(self) -> None:
        """Marks every subscription as lost with the connection."""
        for name, channel in list(self._channels.items()):
            channel.was_cut = channel.was_cut or channel.ready.is_set()
            channel.is_sent = False
            channel.num_unconfirmed = 0
            channel.ready.clear()
            self._forget(name, channel)

    def _forget(self, name: bytes, channel: _Channel) -> None:
        """Drops a channel without listeners and without an outstanding confirmation."""
        if not channel.listeners and not channel.is_sent and not channel.num_unconfirmed:
            self._channels.pop(name, None)
            self._changed.discard(name)


async def _first_failure(*endless: Coroutine[Any, Any, None]) -> None:
    """Runs coroutines together until one fails, and raises its failure."""
    first, *_ = await race(*(asyncio.create_task(each) for each in endless))
    first.result()
