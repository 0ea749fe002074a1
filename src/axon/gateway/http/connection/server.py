"""The HTTP server: uvicorn, with protocols that are bounded. Knows no route, and leaves signals to its owner."""

import asyncio
import contextlib
import math
import socket
from collections.abc import Callable, Iterator

import uvicorn

from axon.gateway.config import GatewayConfig
from axon.gateway.http.connection.http_protocol import http_protocol
from axon.gateway.http.connection.listener import Listener
from axon.gateway.http.connection.socket_protocol import socket_protocol
from axon.gateway.http.middleware import Middleware


class Server(uvicorn.Server):
    """A uvicorn server on one socket. Setting ``should_exit`` ends it; it installs no signal handlers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ended = asyncio.Event()
        self._listeners: list[Listener] = []

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves until ``should_exit`` is set and the last connection has closed; then sets ``ended``."""
        try:
            await super().serve(sockets)
        finally:
            self.ended.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accepts connections on the given sockets; the server binds none of its own."""
        await self.lifespan.startup()
        self.servers = []  # uvicorn's own listeners
        self._listeners = [Listener(each, self.new_protocol) for each in sockets or ()]
        for listener in self._listeners:
            listener.open(self.config.backlog)
        self.started = True

    @property
    def is_listening(self) -> bool:
        """Whether new connections are accepted."""
        return any(listener.is_open for listener in self._listeners)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops listening, and ends when every connection, those in the backlog included, was served and is closed."""
        for listener in self._listeners:
            await listener.close()
        await super().shutdown(sockets)

    def new_protocol(self) -> asyncio.Protocol:
        """Returns the protocol of a new connection, for one that was accepted elsewhere. The server has started."""
        make: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_server(app: Middleware, config: GatewayConfig, *, grace_s: float = 5.0) -> Server:
    """Returns a server for ``app``. When it ends, it waits ``grace_s`` seconds for running requests."""
    return Server(
        uvicorn.Config(
            app,
            http=http_protocol(config),
            ws=socket_protocol(config),
            ws_max_size=config.max_body_bytes,
            ws_ping_interval=config.socket_ping_s or None,
            ws_ping_timeout=config.socket_ping_s or None,
            ws_per_message_deflate=False,  # a compressed message could be a thousand times as large as its bytes
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=config.keep_alive_s,
            timeout_graceful_shutdown=math.ceil(grace_s),
        )
    )
