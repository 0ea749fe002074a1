"""A Service of the cluster: one address that leads each connection to a pod that is ready. Reads no bytes."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from tests.deploy.chart import selects
from tests.deploy.rehearsal.pod import Pod

_CHUNK = 65_536


class Service:
    """A connection is led to a pod once; where none is ready, it is refused by a reset."""

    def __init__(self, selector: Mapping[str, str], port: str, pods: Callable[[], Sequence[Pod]]) -> None:
        """``port`` is the name of the container's port."""
        self._selector, self._port, self._pods = {"matchLabels": dict(selector)}, port, pods
        self._server: asyncio.Server | None = None
        self._led: set[asyncio.Task[None]] = set()
        self._random = random.Random(1)
        self.refused = 0

    async def open(self) -> str:
        """Its address."""
        self._server = await asyncio.start_server(self._came, "127.0.0.1", 0, backlog=1024)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def aclose(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._led:
            task.cancel()
        await asyncio.gather(*self._led, return_exceptions=True)

    def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._lead(reader, writer))
        self._led.add(task)
        task.add_done_callback(self._led.discard)

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ready = [pod for pod in self._pods() if pod.ready and selects(self._selector, pod.labels)]
        try:
            pod = self._random.choice(ready)
            there = await asyncio.open_connection(pod.address, pod.port(self._port))
        except (IndexError, OSError):
            self.refused += 1
            writer.transport.abort()
            await _closed(writer)
            return
        await asyncio.gather(_carry(reader, there[1]), _carry(there[0], writer))
        await _closed(writer)
        await _closed(there[1])


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Everything that comes, and the end of it."""
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        with suppress(OSError, RuntimeError):
            writer.write_eof()
    except OSError:
        writer.transport.abort()


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
