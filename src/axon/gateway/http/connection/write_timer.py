"""Resets the connection of a client that reads nothing of what it is sent. Knows no protocol above TCP."""

import asyncio
import socket
import struct

_LINGER_OFF = struct.pack("ii", 1, 0)
"""SO_LINGER with timeout 0: close sends RST and drops the send buffer, so that a client that never reads cannot hold
megabytes of kernel memory."""


class WriteTimer:
    """Runs while the write buffer of one connection is full. A client that reads slowly goes on, one that reads nothing
    for ``timeout_s`` is cut off."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, timeout_s: float) -> None:
        self._transport, self._loop, self._timeout_s = transport, loop, timeout_s
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begins to wait for the client to read some of what is in the write buffer now."""
        self.cancel()
        num_unsent = self._transport.get_write_buffer_size()
        self._handle = self._loop.call_later(self._timeout_s, self._check, num_unsent)

    def cancel(self) -> None:
        """Stops waiting; a second call changes nothing."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _check(self, num_unsent: int) -> None:
        self._handle = None
        if self._transport.get_write_buffer_size() < num_unsent:
            self.start()
            return
        connection = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_OFF)
        self._transport.abort()
