"""A front's process: ``python -m axon.bootstrap.fronts.front CONTROL HANDED LISTENER``, three descriptors of sockets.

It is an ordinary gateway which is told by its parent what to serve and when to stop. It ends when its parent hangs up.
"""

import asyncio
import contextlib
import signal
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

import axon.gateway.app  # noqa: F401 - imported while the parent prepares what is to be served
from axon.bootstrap.fronts.control import Control
from axon.bootstrap.fronts.messages import Alive, Began, Failed, Scraped, Start, unpack
from axon.bootstrap.gateway.gateway import Answering, open_gateway
from axon.bootstrap.measuring import open_measured
from axon.bootstrap.models.model import prepare_text
from axon.bootstrap.process import Part, Process, started
from axon.bootstrap.profiles import profiled
from axon.bootstrap.services import Services, open_remote
from axon.errors import AxonError
from axon.gateway.http.connection.server import Server
from axon.runtime.tasks import end
from axon.telemetry import logs
from axon.telemetry.summing import families_of

_ALIVE_S = 1.0
_MAX_HANDED = 16
"""Connections that are taken over at a time."""


async def serve(control: socket.socket, handed: socket.socket, listener: socket.socket) -> int:
    """Runs until the parent, or a signal, stops it; returns the exit code."""
    parent = Control(control)
    start = await parent.open()
    if start is None:
        return 0
    settings = unpack(start.settings)
    logs.configure(settings.log, service="axon-front")
    with started(settings, "axon-gateway") as process:
        hearing = asyncio.create_task(parent.run(process))
        try:
            return await _Front(process, parent, start).run(listener, handed)
        except AxonError as error:
            parent.send(Failed(type(error).__name__, error.message, error.code))
            return 1
        finally:
            await parent.aclose()
            await end(hearing)


class _Front:
    """The gateway of this process and what its parent learns of it."""

    def __init__(self, process: Process, parent: Control, start: Start) -> None:
        self._process, self._parent, self._start = process, parent, start
        self._profiles: Part | None = None

    async def run(self, listener: socket.socket, handed: socket.socket) -> int:
        process, parent = self._process, self._parent
        async with AsyncExitStack() as stack:
            gateway = await process.opened(lambda attempt: self._open(listener, attempt), stack)
            if gateway is None:
                return 0
            parent.on_scrape = lambda number: parent.send(self._scraped(number))

            async def begun() -> None:
                process.lifecycle.ready = True
                _Handed(handed, gateway.http).listen()
                parent.send(Began(gateway.ready.key, gateway.ready.waits))

            async def report() -> None:
                while True:
                    parent.send(self._alive(gateway))
                    await asyncio.sleep(_ALIVE_S if gateway.http.started else _ALIVE_S / 100)

            async def drain() -> None:
                parent.send(self._alive(gateway))
                await self._drain(gateway)

            profiles = (self._profiles,) if self._profiles else ()
            try:
                return await process.run(
                    (*gateway.parts, *profiles, report), started=begun, drain=drain, close=gateway.close
                )
            finally:
                parent.send(self._scraped(-1))

    async def _open(self, listener: socket.socket, stack: AsyncExitStack) -> Answering:
        settings = self._process.settings
        services = await self._services(stack)
        texts = [await asyncio.to_thread(prepare_text, each) for each in settings.each_model()]
        gateway = await open_gateway(self._process, services, texts, listener, "", stack, self._start.served)
        self._profiles = profiled(self._process, services, gateway.name, "gateway")
        return gateway

    async def _services(self, stack: AsyncExitStack) -> Services:
        if self._start.hub:
            return await open_remote(Path(self._start.hub), self._process.clock, stack)
        return await open_measured(self._process, stack)

    async def _drain(self, gateway: Answering) -> None:
        """Drains as the parent says; by itself if it was stopped by a signal of its own."""
        process, parent = self._process, self._parent
        if parent.stops:
            await parent.drains.wait()
        if parent.stops and self._start.refuses:
            process.lifecycle.taking = False
            await parent.closes.wait()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(process.settings.lifecycle.drain_s):
                await gateway.drain()

    def _alive(self, gateway: Answering) -> Alive:
        lifecycle = self._process.lifecycle
        return Alive(
            is_serving=gateway.http.started and not gateway.http.should_exit and not lifecycle.draining,
            is_ready=lifecycle.ready and gateway.offers.are_known,
            num_requests=gateway.num_requests,
        )

    def _scraped(self, number: int) -> Scraped:
        return Scraped(number, families_of(self._process.metrics.registry))


class _Handed:
    """Connections that the parent has accepted in place of another front."""

    def __init__(self, handed: socket.socket, server: Server) -> None:
        self._handed, self._server = handed, server
        self._adopting: set[asyncio.Task[object]] = set()

    def listen(self) -> None:
        """Serves each connection that comes from now on."""
        self._handed.setblocking(False)
        asyncio.get_running_loop().add_reader(self._handed.fileno(), self._take)

    def _take(self) -> None:
        with contextlib.suppress(OSError):
            _, fds, _, _ = socket.recv_fds(self._handed, 1, _MAX_HANDED)
            for fd in fds:
                self._adopt(socket.socket(fileno=fd))
            if fds:
                return
            asyncio.get_running_loop().remove_reader(self._handed.fileno())  # the parent has hung up

    def _adopt(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        connection.setblocking(False)
        task = loop.create_task(loop.connect_accepted_socket(self._server.new_protocol, connection))
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-c belongs to the parent
    control, handed, listener = (socket.socket(fileno=int(each)) for each in sys.argv[1:])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(serve(control, handed, listener)))


if __name__ == "__main__":
    main()
