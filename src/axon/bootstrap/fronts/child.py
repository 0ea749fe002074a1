"""One front as its parent sees it: started, spoken to over a socket pair, watched, ended. Decides nothing."""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import sys
from collections.abc import Callable

from axon.bootstrap.fronts.messages import (
    TO_PARENT,
    Alive,
    Began,
    Close,
    Drain,
    Failed,
    Scrape,
    Scraped,
    Start,
    Stop,
)
from axon.engine.protocol.codec import Decoder, encode
from axon.errors import AxonError, Unavailable
from axon.runtime.framing import BadFrame
from axon.telemetry.summing import Families

_READ_BYTES = 1 << 16
_END_S = 5.0
"""Seconds that a front has to end after its parent has hung up; then it is killed."""
_MAX_SILENT_S = 10
"""A front that serves and has not reported for so many seconds hangs, and is killed."""
START_S = 120
"""Seconds that a front has to start."""


class Child:
    """One process of a front. A new one is made after its end."""

    def __init__(self, listener: socket.socket, changed: Callable[[], None]) -> None:
        """``changed`` is called when the front begins or ceases to accept connections."""
        self._listener, self._changed = listener, changed
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._handing: socket.socket | None = None
        self._began: asyncio.Future[Began] = asyncio.get_running_loop().create_future()
        self._ids = itertools.count()
        self._scrapes: dict[int, asyncio.Event] = {}
        self._is_told = False
        self._silent_s = 0
        self._alive = Alive(is_serving=False, is_ready=False, num_requests=0)
        self.families: Families = ()
        """Its metrics at the last scrape."""

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def alive(self) -> Alive:
        """What it last reported."""
        return self._alive

    async def spawn(self) -> None:
        """Starts the process, which imports what it needs and then waits for ``Start``."""
        ours, theirs = socket.socketpair()
        self._handing, taking = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._handing.setblocking(False)
        fds = [theirs.fileno(), taking.fileno(), self._listener.fileno()]
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "axon.bootstrap.fronts.front", *map(str, fds)),
                pass_fds=fds,
                start_new_session=True,  # a ctrl-c is for the parent, which tells its fronts
            )
        except OSError as error:
            ours.close()
            raise Unavailable(f"A front's process could not be started: {error.strerror}.") from error
        finally:
            theirs.close()
            taking.close()
        self._reader, self._writer = await asyncio.open_connection(sock=ours)

    def tell(self, start: Start) -> None:
        """Tells it what to serve."""
        self._is_told = True
        self._send(start)

    async def began(self) -> Began:
        """Returns when it serves; raises the error with which it could not start."""
        return await asyncio.shield(self._began)

    @property
    def problem(self) -> str:
        """Why it could not start; empty if it could."""
        error = self._began.exception() if self._began.done() else None
        return str(error) if error else ""

    async def run(self) -> int:
        """Hears its messages until it ends, however that comes; returns the exit code, -1 if it never began."""
        if self._process is None:
            return -1
        watching = asyncio.create_task(self._watch())
        try:
            await self._hear()
        finally:
            watching.cancel()
            self._report(Alive(is_serving=False, is_ready=False, num_requests=0))
            if not self._began.done():
                self._fail(Unavailable("A front's process ended before it was ready."))
        return await self._reaped()

    def stop(self) -> None:
        self._send(Stop())

    def drain(self) -> None:
        self._send(Drain())

    def close(self) -> None:
        self._send(Close())

    def hand(self, connection: socket.socket) -> bool:
        """Hands it an accepted connection; False when it cannot take one now. The caller closes its own copy."""
        assert self._handing is not None
        try:
            socket.send_fds(self._handing, [b"c"], [connection.fileno()])
        except OSError:
            return False
        return True

    async def scrape(self, timeout_s: float) -> Families:
        """Its metrics now; those of the last scrape if it does not answer in time."""
        number = next(self._ids)
        self._scrapes[number] = answered = asyncio.Event()
        self._send(Scrape(number))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await answered.wait()
        del self._scrapes[number]
        return self.families

    async def aclose(self) -> None:
        """Hangs up, which ends the front; kills it if it has not ended after 5 s."""
        if self._writer is not None:
            self._writer.transport.abort()
        if self._handing is not None:
            self._handing.close()
        if self._process is not None:
            await self._reaped()

    async def _hear(self) -> None:
        decoder = Decoder(TO_PARENT)
        with contextlib.suppress(OSError, BadFrame):  # both end what can be heard of it
            while data := await self._reader.read(_READ_BYTES):
                self._silent_s = 0
                for message in decoder.feed(data):
                    self._take(message)

    def _take(self, message: Began | Failed | Alive | Scraped) -> None:
        match message:
            case Began() if not self._began.done():
                self._began.set_result(message)
            case Failed() if not self._began.done():
                self._fail(message.error())
            case Alive():
                self._report(message)
            case Scraped():
                self.families = message.families
                if answered := self._scrapes.get(message.id):
                    answered.set()

    def _fail(self, error: AxonError) -> None:
        self._began.set_exception(error)
        self._began.exception()  # it may be that nobody waits for it

    def _report(self, alive: Alive) -> None:
        was, self._alive = self._alive, alive
        if was.is_serving != alive.is_serving:
            self._changed()

    async def _watch(self) -> None:
        """Kills a front that hangs. Only seconds in which this process ran too are counted."""
        while True:
            await asyncio.sleep(1.0)
            self._silent_s += self._is_told
            if self._silent_s > (_MAX_SILENT_S if self._began.done() else START_S):
                self._kill()

    async def _reaped(self) -> int:
        """Waits until the process has ended, kills it after a while, and returns its exit code."""
        assert self._process is not None
        try:
            async with asyncio.timeout(_END_S):
                return await self._process.wait()
        except TimeoutError:
            self._kill()
            return await self._process.wait()

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    def _send(self, message: Start | Stop | Drain | Close | Scrape) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(encode(message))
