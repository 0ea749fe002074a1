"""A connection whose client sends no more: has it left, or does it wait for its answer? Knows no request.

The end of what a client sends (FIN) looks the same whether it closed its sending side alone, by shutdown(2), or the
whole connection. Only in the second case its system answers the next bytes with RST. So the server sends some bytes
that mean nothing, and looks for the RST itself, because an event loop does not watch a connection that it cannot read.
"""

import asyncio
import select

INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
"""Bytes that mean nothing before a response of HTTP/1.1: an interim response, which every client must skip."""
LEADING_ZERO = b"0"
"""Bytes that mean nothing between two chunks of a response: a leading zero of the next chunk's size."""
_FIRST_LOOK_S = 0.05
_MAX_INTERVAL_S = 1.0
"""The server looks after ``_FIRST_LOOK_S``, then at intervals that double up to this one."""


class HalfClosed:
    """Aborts the connection when the client turns out to have left."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, probe: bytes) -> None:
        """Sends ``probe``, bytes that mean nothing; none are sent if it is empty."""
        self._transport, self._loop = transport, loop
        if probe:
            transport.write(probe)
        self._timer = self._look_in(_FIRST_LOOK_S)

    def cancel(self) -> None:
        """Looks no more: the connection is closed."""
        self._timer.cancel()

    def _look_in(self, interval_s: float) -> asyncio.TimerHandle:
        return self._loop.call_later(interval_s, self._look, interval_s)

    def _look(self, interval_s: float) -> None:
        if self._transport.is_closing():
            return
        if _is_reset(self._transport.get_extra_info("socket").fileno()):
            self._transport.abort()
        else:
            self._timer = self._look_in(min(2 * interval_s, _MAX_INTERVAL_S))


def _is_reset(descriptor: int) -> bool:
    look = select.poll()
    look.register(descriptor, 0)  # poll(2) reports POLLERR and POLLHUP without being asked
    return bool(look.poll(0))
