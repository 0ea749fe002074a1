"""Accepts connections on one listening socket, many in one pass of the event loop. Knows no HTTP and no TLS.

uvloop's own server accepts one connection in a pass. A burst of 1,500 connections would then take 1,500 passes, and
whoever connects behind it would wait for all of them, because every pass also serves the connections that are open.
"""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterator

import structlog

_MAX_PER_PASS = 64
"""Connections that are accepted in one pass: each costs about 0.1 ms, and the open ones wait meanwhile."""
_PAUSE_S = 1.0
"""When the process or the system has no descriptor left, the listener waits this long before it accepts again."""
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of accept(2) that say that the system lacks something; the connection stays in the backlog."""

_logger = structlog.get_logger("axon.gateway")


class Listener:
    """A listening socket and the connections that it has accepted but not yet handed to their protocols."""

    def __init__(self, listening: socket.socket, make_protocol: Callable[[], asyncio.Protocol]) -> None:
        self._socket, self._make_protocol = listening, make_protocol
        self._loop = asyncio.get_running_loop()
        self._connecting: set[asyncio.Task[object]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self.is_open = False
        """Whether new connections are accepted."""

    def open(self, backlog: int) -> None:
        """Begins to listen and to accept; ``backlog`` is the most connections that wait in the system's queue."""
        self._socket.setblocking(False)
        self._socket.listen(backlog)
        self._backlog, self.is_open = backlog, True
        self._loop.add_reader(self._socket, self._accept_some)

    async def close(self) -> None:
        """Accepts what the backlog holds, closes the socket, and returns when every connection has its protocol.

        Closing the socket resets the connections in its backlog. nginx does not send a POST again after such a reset,
        because it may have been accepted; its client would fail.
        """
        if self.is_open:
            self.is_open = False
            if self._pause is not None:
                self._pause.cancel()
            self._loop.remove_reader(self._socket)
            self._accept(self._backlog)
            self._socket.close()
        if self._connecting:
            await asyncio.wait(self._connecting, timeout=_PAUSE_S)

    def _accept_some(self) -> None:
        if (problem := self._accept(_MAX_PER_PASS)) is not None:
            _logger.warning("listener.paused", error=problem.strerror, retry_s=_PAUSE_S)
            self._loop.remove_reader(self._socket)
            self._pause = self._loop.call_later(_PAUSE_S, self._loop.add_reader, self._socket, self._accept_some)

    def _accept(self, most: int) -> OSError | None:
        """Accepts at most ``most`` connections; returns the error if the system lacks something for the next one."""
        try:
            for connection in _accepted(self._socket, most):
                task = self._loop.create_task(self._connect(connection))
                self._connecting.add(task)
                task.add_done_callback(self._connecting.discard)
        except OSError as error:
            return error
        return None

    async def _connect(self, connection: socket.socket) -> None:
        """Makes the connection's transport and protocol; one whose client has left already is closed."""
        try:
            await self._loop.connect_accepted_socket(self._make_protocol, connection)
        except OSError:
            connection.close()


def _accepted(listening: socket.socket, most: int) -> Iterator[socket.socket]:
    """Yields at most ``most`` connections of the backlog; raises ``OSError`` only if the system lacks something."""
    for _ in range(most):
        try:
            yield listening.accept()[0]
        except BlockingIOError:
            return  # the backlog is empty
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise
            # otherwise this client has left before it was accepted: accept(2) reports its connection's error
