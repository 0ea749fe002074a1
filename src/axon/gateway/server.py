"""The HTTP server: uvicorn, with the deadline for headers that it lacks and signals left to the process's owner."""

import asyncio
import contextlib
import math
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from axon.errors import InvalidInput
from axon.gateway.config import GatewayConfig
from axon.gateway.edge import Edge
from axon.gateway.problems import encoded

_FRESH_S = 1.0
"""How long a connection that has said nothing yet may go on when the server stops listening."""


def _answer(status: bytes, problem: InvalidInput) -> bytes:
    """A whole answer, for what never becomes a request."""
    body = encoded(problem)
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(body)) + body


_TOO_LONG = _answer(
    b"431 Request Header Fields Too Large",
    InvalidInput("The request's headers are too long.", code="headers_too_long"),
)
_NOT_HTTP = _answer(b"400 Bad Request", InvalidInput("This is no HTTP request that can be read.", code="invalid_http"))


class Server(uvicorn.Server):
    """Listens on one socket; ``should_exit`` ends it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ended = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Answers until ``should_exit`` and the last connection's end."""
        try:
            await super().serve(sockets)
        finally:
            self.ended.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_server(app: Edge, config: GatewayConfig, *, grace_s: float = 5.0) -> Server:
    """``grace_s``: how long it waits for running requests when it ends."""
    return Server(
        uvicorn.Config(
            app,
            http=_protocol(config),
            ws="none",
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=math.ceil(grace_s),
        )
    )


def _protocol(config: GatewayConfig) -> type[HttpToolsProtocol]:
    class Protocol(HttpToolsProtocol):
        """Bounds what comes before a request is known: its headers must be short and in time."""

        _deadline: asyncio.TimerHandle | None = None
        _header_bytes = 0
        _is_fresh = True
        _is_leaving = False

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._arm()

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._deadline is not None:
                self._header_bytes += len(data)
                # What comes in one piece may hold a body too: only the parser knows where it begins.
                if self._header_bytes > config.max_header_bytes and b"\r\n\r\n" not in data[: config.max_header_bytes]:
                    self.transport.write(_TOO_LONG)
                    self.transport.close()
                    return
            super().data_received(data)

        def send_400_response(self, msg: str) -> None:
            """For what the parser cannot read; ``msg`` says no more than that."""
            self.transport.write(_NOT_HTTP)
            self.transport.close()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._arm()

        def on_headers_complete(self) -> None:
            self._disarm()
            self._is_fresh = False
            super().on_headers_complete()
            if self._is_leaving and self.cycle is not None:
                self.cycle.keep_alive = False

        def shutdown(self) -> None:
            """A connection that has just been made brings a request: to close it would lose one for no reason."""
            if self._is_fresh and not self._is_leaving:
                self._is_leaving = True
                self.loop.call_later(_FRESH_S, self._leave)
            else:
                super().shutdown()

        def _leave(self) -> None:
            if self._is_fresh:
                self.transport.close()

        def _arm(self) -> None:
            if self._deadline is None:
                self._header_bytes = 0
                self._deadline = self.loop.call_later(config.header_timeout_s, self.transport.close)

        def _disarm(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return Protocol
