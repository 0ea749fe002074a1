"""Serves the twins of this process to its fronts, over a Unix socket that only this user can open. Knows no front."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import structlog

from axon.adapters.live.memory.live import MemoryLive
from axon.adapters.queue.memory import MemoryQueue
from axon.adapters.remote.frames import FAILURE, LEAVE, LISTEN, NOTIFIED, RESULT, Failure, asked, frame
from axon.adapters.remote.methods import Method, methods_of
from axon.adapters.remote.path import reachable
from axon.adapters.remote.registry import ServedRegistry
from axon.domain.record import REFUSED
from axon.errors import AxonError, DependencyDown
from axon.ports.journal import Journal
from axon.ports.store import Store
from axon.runtime.framing import Framer
from axon.runtime.tasks import end

_READ_BYTES = 1 << 18
_MAX_UNSENT_BYTES = 16 << 20
"""A front that takes nothing gets no notifications beyond this; they may be lost, and it reads the log instead."""
_LIVE = ("log", "leases", "accounts", "crowds", "shares", "cache", "pins", "presences", "wakeups")
_STORE = (
    "keys",
    "web_sessions",
    "tenants",
    "plans",
    "audit",
    "usage",
    "storage",
    "turns",
    "pinned",
    "markers",
    "terms",
    "conversations",
    "tombstones",
    "files",
    "batches",
)
_CHANNEL = msgspec.msgpack.Decoder(str)

_logger = structlog.get_logger("axon.fronts")


class PortServer:
    """Accepts fronts and answers their calls."""

    def __init__(self, path: Path, *, live: MemoryLive, queue: MemoryQueue, journal: Journal, store: Store) -> None:
        self._path = path
        self._live, self._queue, self._journal, self._store = live, queue, journal, store
        self._server: asyncio.Server | None = None
        self._is_closed = False
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def num_fronts(self) -> int:
        """Number of fronts that are connected."""
        return len(self._connections)

    @property
    def num_unsent_bytes(self) -> int:
        """Bytes that wait for fronts to take them."""
        return sum(writer.transport.get_write_buffer_size() for writer in self._connections.values())

    async def open(self) -> None:
        """Listens. A socket that a server before has left there is removed."""
        self._path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener, reachable(self._path) as address:
            os.fchmod(listener.fileno(), 0o600)  # before it has a name: nobody else can open it, at no time
            listener.bind(address)
            listener.setblocking(False)
            self._server = await asyncio.start_unix_server(self._accept, sock=listener.dup())

    async def aclose(self) -> None:
        """Hangs up."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        await end(*self._connections)
        self._path.unlink(missing_ok=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_closed:  # it had been accepted before
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        queue = self._queue.beside()
        await queue.open()
        connection = _Connection(self._objects(queue), self._live, writer)
        try:
            await connection.serve(reader)
        except asyncio.CancelledError:
            pass  # the server closes
        except Exception:
            _logger.exception("front.connection_failed")
        finally:
            connection.close()
            await queue.aclose()
            del self._connections[task]

    def _objects(self, queue: MemoryQueue) -> Mapping[str, object]:
        """The object behind each port, for one front: what it takes from the queue returns when it dies."""
        return {
            **{name: getattr(self._live, name) for name in _LIVE},
            **{name: getattr(self._store, name) for name in _STORE},
            "registry": ServedRegistry(self._store.registry),
            "queue": queue,
            "journal": self._journal,
            "store": self._store,
        }


class _Connection:
    """One front."""

    def __init__(self, objects: Mapping[str, object], live: MemoryLive, writer: asyncio.StreamWriter) -> None:
        self._live, self._writer = live, writer
        self._methods: dict[str, tuple[Method, Callable[..., Awaitable[object]], bool]] = {}
        for port, target in objects.items():
            never_waits = port in _LIVE or port == "queue"  # memory of this process: answered without a task
            for method in methods_of(port):
                self._methods[method.name] = method, getattr(target, method.name.partition(".")[2]), never_waits
        self._subscriptions: dict[int, Callable[[], None]] = {}

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Answers until the front hangs up."""
        frames = Framer()
        with contextlib.suppress(OSError):
            async with asyncio.TaskGroup() as tasks:
                while data := await reader.read(_READ_BYTES):
                    for body in frames.feed(data):
                        await self._take(*asked(body), tasks)

    def close(self) -> None:
        for leave in self._subscriptions.values():
            leave()
        self._writer.transport.abort()

    async def _take(self, number: int, name: str, raw: Any, tasks: asyncio.TaskGroup) -> None:
        if name == LISTEN:
            self._listen(number, _CHANNEL.decode(raw))
        elif name == LEAVE:
            if leave := self._subscriptions.pop(number, None):
                leave()
        else:
            method, bound, never_waits = self._methods[name]
            try:
                values = method.arguments.decode(raw)
            except msgspec.ValidationError as error:
                refusal = DependencyDown(f"{name} was called with a wrong value: {error}", code=REFUSED)
                self._send(frame(number, FAILURE, Failure.of(refusal)))
                return
            answering = self._answer(number, method, method.call(bound, values))
            if never_waits:
                await answering
            else:
                tasks.create_task(answering)

    async def _answer(self, number: int, method: Method, called: Awaitable[object]) -> None:
        try:
            answer = frame(number, RESULT, await called)
        except AxonError as error:
            answer = frame(number, FAILURE, Failure.of(error))
        except Exception:
            _logger.exception("front.call_failed", method=method.name)
            answer = frame(number, FAILURE, Failure.of(AxonError()))
        self._send(answer)

    def _listen(self, number: int, channel: str) -> None:
        def notified(payload: bytes) -> None:
            self._send(frame(number, NOTIFIED, payload), most_unsent=_MAX_UNSENT_BYTES)

        self._subscriptions[number] = self._live.wakeups.relay(channel, notified)

    def _send(self, data: bytes, most_unsent: int | None = None) -> None:
        """Sends to the front, unless it has hung up, or more than ``most_unsent`` bytes wait already.

        Whoever notifies must not fail for a front that has died: uvloop raises ``RuntimeError`` for every use of a
        transport that is closed, which may be known here only later.
        """
        transport = self._writer.transport
        with contextlib.suppress(RuntimeError):
            if not transport.is_closing() and (most_unsent is None or transport.get_write_buffer_size() < most_unsent):
                transport.write(data)
