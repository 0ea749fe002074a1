"""The wakeups on Redis Pub/Sub: one connection carries every channel somebody listens to. Knows no payload.

Its own task reads and writes it. When the connection is lost, another one subscribes again and every listener gets
an empty payload: there may have been something to hear meanwhile.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError

from axon.adapters.live.memory_wakeups import MemoryListener
from axon.adapters.live.redis_client import RedisClient
from axon.adapters.live.redis_driver_errors import DRIVER_ERRORS
from axon.runtime.clock import Clock, SystemClock

_log = logging.getLogger(__name__)

_RECONNECT_S = 0.2


@dataclass(slots=True, eq=False)
class _Channel:
    """Who listens, and what the server was asked for on this connection."""

    listeners: set[MemoryListener] = field(default_factory=set)
    is_sent: bool = False
    """The last thing sent for it is a subscription."""
    num_unconfirmed: int = 0
    was_cut: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Subscribed, and the server said so."""

    def wake(self, payload: bytes) -> None:
        for listener in self.listeners:
            listener.put(payload)


class RedisWakeups:
    """A listener holds at most ``max_waiting`` payloads; the oldest go first."""

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

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[MemoryListener]:
        name = self._client.channel(channel).encode()
        entry = self._channels.setdefault(name, _Channel())
        listener = MemoryListener(self._max_waiting)
        entry.listeners.add(listener)
        try:
            if not entry.is_sent:
                self._change(name)
            async with self._client.deadline():
                await entry.ready.wait()
            yield listener
        finally:
            entry.listeners.discard(listener)
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
        """Once an outage."""
        if not self._is_cut_off:
            _log.warning("The live service's wake-ups are cut off, connecting again: %s", error)
        self._is_cut_off = True

    async def _serve(self) -> None:
        """One connection's life."""
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
        while True:
            match await connection.read_response(timeout=math.inf):
                case [b"message", name, payload]:
                    if channel := self._channels.get(name):
                        channel.wake(payload)
                case [b"subscribe", name, _]:
                    self._confirm(name)
            self._has_heard = True

    async def _write(self, connection: AbstractConnection) -> None:
        """Sends what changed, and a ping from time to time: a connection can end without a word."""
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
        """The commands that bring the server from what it was asked for to what is listened to."""
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
        """A channel left and joined again is subscribed by the last of its confirmations, not by the first."""
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
        """The connection is gone and every subscription with it."""
        for name, channel in list(self._channels.items()):
            channel.was_cut = channel.was_cut or channel.ready.is_set()
            channel.is_sent = False
            channel.num_unconfirmed = 0
            channel.ready.clear()
            self._forget(name, channel)

    def _forget(self, name: bytes, channel: _Channel) -> None:
        """Nobody listens, and no word of the server about it is on its way."""
        if not channel.listeners and not channel.is_sent and not channel.num_unconfirmed:
            self._channels.pop(name, None)
            self._changed.discard(name)


async def _first_failure(*endless: Coroutine[Any, Any, None]) -> None:
    """Runs them together until one fails. A ``TaskGroup`` would drop a cancellation that comes at that moment."""
    tasks = [asyncio.create_task(each) for each in endless]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        done.pop().result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
