"""A lingering close: an answer is sent to its end while the rest of its request is still read. Knows no HTTP."""

import asyncio
from collections.abc import Callable


class Lingering:
    """The transport as one request's answer uses it: ``close`` is left to the connection, which may close later.

    To close a socket while its client still sends makes the system send RST, at which the client drops the answer that
    it has not read yet.
    """

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.close = close
        self.write, self.is_closing = transport.write, transport.is_closing
        self.get_extra_info = transport.get_extra_info
