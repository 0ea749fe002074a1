"""The HTTP server: uvicorn, with the deadline for headers that it lacks and signals left to the process's owner."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from axon.gateway.config import GatewayConfig
from axon.gateway.edge import Edge

_BACKLOG = 2048


class Server(uvicorn.Server):
    """Listens on one socket; ``should_exit`` ends it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_server(app: Edge, config: GatewayConfig) -> Server:
    return Server(
        uvicorn.Config(
            app,
            http=_protocol(config.header_timeout_s),
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=5,
        )
    )


def listen(config: GatewayConfig) -> socket.socket:
    """The API's socket; raises OSError when the address is taken."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((config.host, config.port))
        listener.listen(_BACKLOG)  # from here on connections wait for us, however long the rest of the start takes
    except OSError:
        listener.close()
        raise
    return listener


def _protocol(header_timeout_s: float) -> type[HttpToolsProtocol]:
    class Protocol(HttpToolsProtocol):
        """Closes a connection whose request's headers do not come in time."""

        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._arm()

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._arm()

        def on_headers_complete(self) -> None:
            self._disarm()
            super().on_headers_complete()

        def _arm(self) -> None:
            if self._deadline is None:
                self._deadline = self.loop.call_later(header_timeout_s, self.transport.close)

        def _disarm(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return Protocol
