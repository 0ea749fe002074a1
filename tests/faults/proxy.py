"""A TCP forwarder between a server and its client: switched to another target, cut, or made a black hole at will.

Knows no protocol. Runs an event loop in a thread of its own, so that a test drives it with plain calls.
"""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

_READ_BYTES = 1 << 16


class Forwarder:
    """One listening port and whatever stands behind it now."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self._target_port = target_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="forwarder", daemon=True)
        self._flowing = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def __enter__(self) -> "Forwarder":
        self._thread.start()
        self._call(self._open())
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._call(self._aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def switch(self, target_port: int) -> None:
        """From now on it leads elsewhere; whoever was connected is cut off."""
        self._call(self._switch(target_port))

    def swallow(self) -> None:
        """Takes connections and bytes, and passes nothing on: as a network that drops everything."""
        self._call(self._set_flowing(False))

    def heal(self) -> None:
        """What was held back arrives late, as after retransmissions."""
        self._call(self._set_flowing(True))

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10.0)

    async def _open(self) -> None:
        self._flowing.set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _aclose(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._cut()

    async def _switch(self, target_port: int) -> None:
        self._target_port = target_port
        await self._cut()

    async def _set_flowing(self, flowing: bool) -> None:
        (self._flowing.set if flowing else self._flowing.clear)()

    async def _cut(self) -> None:
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(set(self._connections))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._connect(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it or it is cut."""
        writers = [writer]
        try:
            with contextlib.suppress(OSError):
                await self._flowing.wait()
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
                writers.append(far_writer)
                pumps = [
                    asyncio.create_task(self._pump(reader, far_writer)),
                    asyncio.create_task(self._pump(far_reader, writer)),
                ]
                try:
                    await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for pump in pumps:
                        pump.cancel()
                    await asyncio.wait(pumps)
        except asyncio.CancelledError:
            pass  # cut
        finally:
            for each in writers:
                each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_READ_BYTES):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
