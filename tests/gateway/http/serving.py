"""The HTTP server by itself, over real sockets, on the loop of production in a thread of its own. Tests nothing."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import uvloop
from starlette.types import Message, Receive, Scope, Send

from axon.gateway.config import GatewayConfig
from axon.gateway.http.connection.server import Server, make_server
from tests.journeys.server import wait_until
from tests.security.raw import PATIENCE_S, Answer, answers

LARGE = 64 << 20
"""Bytes of an answer that no buffer of the system takes whole."""


class App:
    """Answers with the path it was asked for, and knows who has asked what."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.left: list[str] = []
        self.bodies: list[bytes] = []
        self.header_names: list[bytes] = []
        self.released = asyncio.Event()
        """Until then ``/held`` is not answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        self.asked.append(path)
        if scope["type"] == "websocket":
            await self._close_at_the_first_message(receive, send)
            return
        if path == "/streamed":
            await send({"type": "http.response.start", "status": 200})
            await send({"type": "http.response.body", "body": path.encode(), "more_body": True})
            await self._wait(path, receive)
            await send({"type": "http.response.body", "body": path.encode()})
            return
        if path == "/held":
            await self._wait(path, receive)
        elif path != "/early":  # which is answered before its body is here
            self.bodies.append(await self._body(receive))
        self.header_names += [name for name, _ in scope["headers"]]
        body = bytes(LARGE) if path == "/large" else path.encode()
        head: Message = {"type": "http.response.start", "status": 200}
        await send({**head, "headers": [(b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})

    async def _close_at_the_first_message(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        await send({"type": "websocket.close", "code": 1008})

    async def _body(self, receive: Receive) -> bytes:
        parts, more = [], True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        return b"".join(parts)

    async def _wait(self, path: str, receive: Receive) -> None:
        await self._body(receive)
        leaving = asyncio.ensure_future(receive())
        released = asyncio.ensure_future(self.released.wait())
        await asyncio.wait([leaving, released], return_when=asyncio.FIRST_COMPLETED)
        if not self.released.is_set():
            self.left.append(path)
        leaving.cancel()
        released.cancel()


@dataclass
class Served:
    """A server that runs, and what the tests need of it."""

    server: Server
    app: App
    listener: socket.socket
    loop: asyncio.AbstractEventLoop
    address: tuple[str, int]

    def connected(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=PATIENCE_S)

    def ask(self, data: bytes, *, most: int = 1) -> list[Answer]:
        """The answers to these bytes, over a connection of their own."""
        with self.connected() as line:
            line.sendall(data)
            return list(answers(line, most=most))

    def release(self) -> None:
        self.loop.call_soon_threadsafe(self.app.released.set)


@contextlib.contextmanager
def serving(**config: Any) -> Iterator[Served]:
    """A server with these settings; it ends with the block, and so does every request that it still has."""
    made: list[Served] = []

    async def run() -> None:
        app: Any = App()
        listener = socket.create_server(("127.0.0.1", 0))
        server = make_server(app, GatewayConfig(**config), grace_s=PATIENCE_S)
        made.append(Served(server, app, listener, asyncio.get_running_loop(), listener.getsockname()))
        await server.serve([listener])

    def main() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run())

    thread = threading.Thread(target=main)
    thread.start()
    wait_until(lambda: made and made[0].server.started, "it answers")
    [served] = made
    try:
        yield served
    finally:
        served.server.should_exit = served.server.force_exit = True
        with contextlib.suppress(RuntimeError):  # it has ended already
            served.release()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def get(path: str, *headers: str) -> bytes:
    """A request that leaves its connection open."""
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: axon", *headers, "", ""]).encode()


def closed(line: socket.socket) -> bool:
    """Waits until the other side ends the connection without a word."""
    return line.recv(1) == b""
