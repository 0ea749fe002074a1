"""A front's end of the socket pair to its parent: hears what it is told, and tells what it is asked. Serves nothing."""

import asyncio
import socket
from typing import TYPE_CHECKING

from axon.bootstrap.fronts.messages import (
    TO_FRONT,
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
from axon.bootstrap.process import Process
from axon.engine.protocol.codec import Decoder, encode
from axon.runtime.framing import BadFrame

if TYPE_CHECKING:
    from collections.abc import Callable

_READ_BYTES = 1 << 16
_LAST_WORDS_S = 1.0
"""Seconds for the last messages to leave."""


class Control:
    """The parent, as its front knows it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._decoder = Decoder(TO_FRONT)
        self.stops = False
        """Whether the parent has said that the server is being stopped."""
        self.drains, self.closes = asyncio.Event(), asyncio.Event()
        self.on_scrape: Callable[[int], None] = lambda number: None
        """Called with the number of a scrape that the parent waits for."""

    async def open(self) -> Start | None:
        """Waits for the parent's first message; None when it has gone."""
        self._reader, self._writer = await asyncio.open_connection(sock=self._socket)
        while messages := await self._receive():
            for message in messages:
                if isinstance(message, Start):
                    return message
        return None

    def send(self, message: Began | Failed | Alive | Scraped) -> None:
        if not self._writer.is_closing():
            self._writer.write(encode(message))

    async def run(self, process: Process) -> None:
        """Hears the parent until it hangs up, which ends the process at once."""
        while messages := await self._receive():
            for message in messages:
                self._take(message, process)
        process.lifecycle.stop()
        process.lifecycle.hurry.set()

    async def aclose(self) -> None:
        """Sends what is still to be sent, as far as the parent takes it."""
        try:
            async with asyncio.timeout(_LAST_WORDS_S):
                self._writer.close()
                await self._writer.wait_closed()
        except (TimeoutError, OSError):
            self._writer.transport.abort()

    def _take(self, message: object, process: Process) -> None:
        match message:
            case Stop():
                self.stops = True
                process.lifecycle.stop()
            case Drain():
                self.drains.set()
            case Close():
                self.closes.set()
            case Scrape():
                self.on_scrape(message.id)

    async def _receive(self) -> list[object]:
        """The next whole messages; an empty list when the parent has gone."""
        while True:
            try:
                data = await self._reader.read(_READ_BYTES)
                messages = self._decoder.feed(data)
            except (OSError, BadFrame):
                return []
            if messages or not data:
                return messages
