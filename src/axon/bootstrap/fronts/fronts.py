"""The fronts of one server: N processes on one port, started, watched, restarted and stopped together.

Each front has a listening socket of its own on the port (SO_REUSEPORT), so that the kernel spreads the connections.
This process made the sockets and keeps them: when a front dies, the connections that wait for it stay, and are handed
to the other fronts until it is back.
"""

import asyncio
import contextlib
import itertools
import socket
from collections.abc import Sequence

import structlog

from axon.bootstrap.fronts.child import START_S, Child
from axon.bootstrap.fronts.messages import Began, Start
from axon.errors import Unavailable
from axon.runtime.clock import Clock
from axon.runtime.tasks import end
from axon.telemetry.summing import Families, cumulative, summed

_BACKLOG = 2048
_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 10.0
_HEALTHY_S = 30.0
"""A front that lived for so long is restarted without a delay."""
_SCRAPE_S = 2.0

_logger = structlog.get_logger("axon.fronts")


def restart_delay_s(num_failures: int) -> float:
    """Seconds to wait before a restart, after so many short lives in a row (exponential backoff)."""
    return 0.0 if num_failures <= 0 else min(_LONGEST_DELAY_S, _FIRST_DELAY_S * 2.0 ** (num_failures - 1))


class Fronts:
    """All fronts of a server, each by the number of its listener."""

    def __init__(self, listeners: Sequence[socket.socket], clock: Clock) -> None:
        self._listeners, self._clock = list(listeners), clock
        self._children: list[Child] = []
        self._keepers: list[asyncio.Task[None]] = []
        self._start: Start | None = None
        self._is_stopping = False
        self._has_port = True
        self._next_taker = itertools.count()
        self._past: Families = ()
        """What fronts that have ended had counted."""

    @property
    def is_ready(self) -> bool:
        """Whether a front can take work."""
        return any(child.alive.is_ready for child in self._children)

    @property
    def num_requests(self) -> int:
        """Requests that are being answered, as last reported."""
        return sum(child.alive.num_requests for child in self._children)

    async def open(self) -> None:
        """Starts the processes, which import what they need and wait."""
        for number, listener in enumerate(self._listeners):
            listener.setblocking(False)
            listener.listen(_BACKLOG)
            self._children.append(self._new(number))
            await self._children[number].spawn()
            self._keepers.append(asyncio.create_task(self._keep(number), name=f"front-{number}"))

    async def start(self, start: Start) -> Sequence[Began]:
        """Lets all of them serve; returns when they do. Raises the first error with which one could not start."""
        self._start = start
        for child in self._children:
            child.tell(start)
        try:
            async with asyncio.timeout(START_S):
                return await asyncio.gather(*(child.began() for child in self._children))
        except TimeoutError:
            raise Unavailable(f"The fronts were not ready after {START_S} s.") from None

    async def run(self) -> None:
        """Returns when the fronts have been stopped and have ended; raises what the watching fails of."""
        await asyncio.gather(*self._keepers)

    def stop(self) -> None:
        """The server is being stopped: no front is ready any more, and none is restarted."""
        self._is_stopping = True
        for child in self._children:
            child.stop()

    def drain(self) -> None:
        """Lets the fronts drain. Those that close their port need it for themselves: see ``leave_port``."""
        for child in self._children:
            child.drain()

    async def close(self, timeout_s: float) -> None:
        """Lets the fronts end what is still open, and returns when they have ended or the time has passed."""
        self.leave_port()
        for child in self._children:
            child.close()
        await self.ended(timeout_s)

    async def ended(self, timeout_s: float) -> None:
        """Returns when all fronts have ended, or the time has passed."""
        await asyncio.wait(self._keepers, timeout=timeout_s)

    def leave_port(self) -> None:
        """Closes this process's copies of the listeners: a connection is refused as soon as the front has closed."""
        if self._has_port:
            self._has_port = False
            for number in range(len(self._listeners)):
                self._stop_accepting(number)
                self._listeners[number].close()

    async def aclose(self) -> None:
        """Ends every front at once."""
        self._is_stopping = True
        self.leave_port()
        await end(*self._keepers)
        await asyncio.gather(*(child.aclose() for child in self._children))

    async def scrape(self) -> list[Families]:
        """The metrics of each front, and of those that have ended."""
        return [self._past, *await asyncio.gather(*(child.scrape(_SCRAPE_S) for child in self._children))]

    async def _keep(self, number: int) -> None:
        """Runs a listener's fronts one after the other, until the server is stopped."""
        num_failures = 0
        while True:
            child, born_at = self._children[number], self._clock.monotonic()
            code = await child.run()
            self._past = cumulative(summed([self._past, child.families]))
            child.families = ()
            if self._is_stopping or self._start is None:
                return
            num_failures = 0 if self._clock.monotonic() - born_at >= _HEALTHY_S else num_failures + 1
            delay_s = restart_delay_s(num_failures)
            _logger.warning("front.ended", pid=child.pid, exit_code=code, problem=child.problem, retry_s=delay_s)
            await child.aclose()
            await asyncio.sleep(delay_s)
            self._children[number] = child = self._new(number)
            with contextlib.suppress(Unavailable):  # then it ends at once, and is tried again later
                await child.spawn()
                child.tell(self._start)

    def _new(self, number: int) -> Child:
        return Child(self._listeners[number], self._share_waiting)

    def _share_waiting(self) -> None:
        """Accepts connections in place of each front that does not, as long as another one does."""
        for number, child in enumerate(self._children):
            if self._has_port and not self._is_stopping and not child.alive.is_serving and self._takers():
                asyncio.get_running_loop().add_reader(self._listeners[number].fileno(), self._hand_over, number)
            else:
                self._stop_accepting(number)

    def _stop_accepting(self, number: int) -> None:
        if self._listeners[number].fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._listeners[number].fileno())

    def _takers(self) -> list[Child]:
        return [child for child in self._children if child.alive.is_serving]

    def _hand_over(self, number: int) -> None:
        """Gives the next connection of a listener to the fronts in turn."""
        takers, first = self._takers(), next(self._next_taker)
        with contextlib.suppress(OSError):  # the front itself has taken it, or too many files are open
            connection, _ = self._listeners[number].accept()
            with connection:
                any(takers[(first + step) % len(takers)].hand(connection) for step in range(len(takers)))
