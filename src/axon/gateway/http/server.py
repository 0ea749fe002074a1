"""The HTTP server: uvicorn, with timeouts and bounds that it lacks. Knows no route, and leaves signals to its owner."""

import asyncio
import contextlib
import math
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from axon.errors import AxonError, InvalidInput, Overloaded
from axon.gateway.config import GatewayConfig
from axon.gateway.http.errors import encoded, headers_of
from axon.gateway.http.middleware import Middleware

_FRESH_CONNECTION_S = 1.0
"""When the server stops listening, a connection that has sent nothing yet stays open this long for its request."""
_SURPLUS_HEADER_TIMEOUT_S = 2.0
"""A surplus connection, one beyond ``max_connections``, is closed if its request's headers take longer than this."""
_MAX_SURPLUS_CONNECTIONS = 500
"""At most this many surplus connections are open, because each costs a file descriptor; more are closed with a 503."""
_CHUNK_HEADER_BYTES = 16
"""A chunk of a chunked body may spend this many bytes on its size line before they count as framing."""
_HEAD_END = b"\r\n\r\n"
"""The empty line that ends a request's headers, and the trailers of a chunked body."""
_MIN_PIECE_BYTES = 24
"""The parser gets at least this many bytes at a time, so that a flood of empty lines costs little. No request is
shorter."""
_LINGER_OFF = struct.pack("ii", 1, 0)
"""SO_LINGER with timeout 0: close sends RST and drops the send buffer, so that a client that never reads cannot hold
megabytes of kernel memory."""


def _response(status: bytes, problem: AxonError) -> bytes:
    """Returns the bytes of a whole HTTP response, for input that never reaches the application as a request."""
    body = encoded(problem)
    headers = "".join(f"{name}: {value}\r\n" for name, value in headers_of(problem).items()).encode()
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\nconnection: close\r\n%bcontent-length: %d\r\n\r\n"
    return head % (status, headers, len(body)) + body


_HEADERS_TOO_LONG = _response(
    b"431 Request Header Fields Too Large",
    InvalidInput("The request's headers are too long.", code="headers_too_long"),
)
_NOT_HTTP = _response(b"400 Bad Request", InvalidInput("The request is not valid HTTP/1.1.", code="invalid_http"))
_NOT_HTTP_1 = _response(
    b"505 HTTP Version Not Supported",
    InvalidInput("This server speaks HTTP/1.1 and HTTP/1.0.", code="http_version_not_supported"),
)
_INVALID_HOST = _response(
    b"400 Bad Request", InvalidInput("An HTTP/1.1 request must have exactly one Host header.", code="invalid_host")
)
_UNSUPPORTED_CODING = _response(
    b"501 Not Implemented",
    InvalidInput("This server reads no Transfer-Encoding but 'chunked'.", code="unsupported_transfer_encoding"),
)
_UNSUPPORTED_EXPECTATION = _response(
    b"417 Expectation Failed",
    InvalidInput("This server meets no Expect header but '100-continue'.", code="unsupported_expectation"),
)
_TOO_MANY_CONNECTIONS = _response(b"503 Service Unavailable", Overloaded(retry_after_s=1.0))


def _objection(version: str, headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """Returns the response to a request that the parser accepts and RFC 9112 (HTTP/1.1) forbids; else None."""
    if version not in ("1.0", "1.1"):
        return _NOT_HTTP if version == "0.9" else _NOT_HTTP_1
    values: dict[bytes, list[bytes]] = {b"host": [], b"transfer-encoding": [], b"expect": []}
    for name, value in headers:
        if name in values:
            values[name].append(value.strip().lower())
    if len(values[b"host"]) > 1 or (version == "1.1" and not values[b"host"]):
        return _INVALID_HOST
    if codings := values[b"transfer-encoding"]:
        if version == "1.0":
            return _NOT_HTTP
        if codings != [b"chunked"]:
            return _UNSUPPORTED_CODING
    if any(value != b"100-continue" for value in values[b"expect"]):
        return _UNSUPPORTED_EXPECTATION
    return None


class _Refused(Exception):
    """Raised in a parser callback to stop the parser: the request is refused before the application sees it."""


def _piece_end(data: bytes, start: int, num_body_bytes: int) -> int:
    """Returns the index at which to cut ``data`` so that the parser sees the end of at most one request's headers.

    ``num_body_bytes`` is the number of bytes still to come of a body with a Content-Length.
    """
    if num_body_bytes:
        return min(len(data), start + num_body_bytes)
    found = data.find(_HEAD_END, start + _MIN_PIECE_BYTES - len(_HEAD_END))
    return len(data) if found < 0 else found + len(_HEAD_END)


def _accepted(listener: socket.socket, most: int) -> Iterator[socket.socket]:
    """Accepts the connections in the listener's backlog, at most ``most``."""
    with contextlib.suppress(OSError):  # the backlog is empty, or the listener is closed
        for _ in range(most):
            yield listener.accept()[0]


class _Flow(FlowControl):
    """Flow control that does not resume reading from the socket while too many bytes wait for the parser."""

    is_full = False
    """Whether more than ``HIGH_WATER_LIMIT`` received bytes wait for the parser."""

    def resume_reading(self) -> None:
        if not self.is_full:
            super().resume_reading()


class Server(uvicorn.Server):
    """A uvicorn server on one socket. Setting ``should_exit`` ends it; it installs no signal handlers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ended = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves until ``should_exit`` is set and the last connection has closed; then sets ``ended``."""
        try:
            await super().serve(sockets)
        finally:
            self.ended.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops listening, and answers the connections in the backlog, which closing the listener would reset.

        nginx does not send a POST again after such a reset, because it may have been accepted; its client would fail.
        """
        backlog = [connection for each in sockets or () for connection in _accepted(each, self.config.backlog)]
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for connection in backlog:
            await loop.connect_accepted_socket(self.new_protocol, connection)
        await asyncio.sleep(0)  # the newest connections register with the server, which then shuts each of them down
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
            http=_protocol(config),
            ws="none",
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


def _protocol(config: GatewayConfig) -> type[HttpToolsProtocol]:
    """Returns uvicorn's protocol class with this configuration's timeouts and bounds."""

    class Protocol(HttpToolsProtocol):
        """One connection: bounds the time and size of headers and framing, the unread response and the pipeline.

        connected ─► headers ─► body ─► next headers    each has a timeout; a response may come before the body's end

        HTTP pipelining: a request that was sent before the previous one is answered stays unparsed, because a parsed
        request costs far more memory than its bytes. Meanwhile the socket is still read, which is the only way to see
        that the client has left, until 64 KB wait: a connection holds at most that and one read (256 KB).
        """

        flow: _Flow
        _unparsed = b""
        """Bytes that were received and not yet given to the parser."""
        _running: RequestResponseCycle | None = None
        """The request that is being answered; ``cycle`` is the last one that was parsed."""
        _num_body_bytes = 0
        """Number of bytes still to come of a body with a Content-Length."""

        _header_timer: asyncio.TimerHandle | None = None
        """Closes the connection if the request's headers do not come in time."""
        _drain_timer: asyncio.TimerHandle | None = None
        """Closes the connection if the rest of a body, whose request is already answered, does not come in time."""
        _write_timer: asyncio.TimerHandle | None = None
        """Resets the connection if the client reads nothing of its response in time."""
        _refusal: bytes | None = None
        """The response to a request at which a callback stopped the parser."""
        _header_bytes = 0
        """Bytes received since the header timer was started."""
        _framing_bytes = 0
        """Bytes received after the headers that are no body: sizes of chunks, and trailers."""
        _in_body = False
        """Whether the parser is between the end of a request's headers and the end of its body."""
        _is_fresh = True
        """Whether this connection has brought no request's headers yet."""
        _is_surplus = False
        """Whether the connection is one beyond ``max_connections``: it serves one request and is closed."""
        _is_leaving = False
        """Whether the server shuts down and this connection is open only for its first request."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.flow = _Flow(transport)
            self._is_surplus = len(self.connections) > config.max_connections
            if len(self.connections) > config.max_connections + _MAX_SURPLUS_CONNECTIONS:
                transport.write(_TOO_MANY_CONNECTIONS)
                transport.close()
            self._start_header_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel_header_timer()
            self._cancel_drain_timer()
            self._cancel_write_timer()
            self._unparsed = b""
            self.pipeline.clear()
            if self._running is not None and not self._running.response_complete:
                self._running.disconnected = True
                self._running.message_event.set()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            data, start = self._unparsed + data, 0
            while start < len(data) and self._can_parse and not self.transport.is_closing():
                end = _piece_end(data, start, self._num_body_bytes)
                self._parse(data[start:end])
                start = end
            self._unparsed = data[start:]
            self.flow.is_full = len(self._unparsed) > HIGH_WATER_LIMIT
            if self.flow.is_full:
                self.flow.pause_reading()

        @property
        def _can_parse(self) -> bool:
            """Whether the parser may get the next bytes: they belong to a body, or no earlier request is unanswered."""
            return not self.pipeline and (self._in_body or self._is_answered)

        def _parse(self, data: bytes) -> None:
            if self._header_timer is not None:
                self._header_bytes += len(data)
                # The piece may hold a part of the body too, and only the parser knows where the body begins.
                if self._header_bytes > config.max_header_bytes and _HEAD_END not in data[: config.max_header_bytes]:
                    self._refuse(_HEADERS_TOO_LONG)
                    return
            elif self._in_body:
                self._framing_bytes += len(data)
            super().data_received(data)
            if self.transport.is_closing():
                return
            if self._in_body and self._framing_bytes > config.max_header_bytes:
                self._refuse(_HEADERS_TOO_LONG)
            elif not self._in_body and self._is_answered and self.timeout_keep_alive_task is None:
                self._start_header_timer()  # empty lines between requests do not extend the keep-alive time

        def send_400_response(self, msg: str) -> None:
            """Answers what the parser cannot read, or was stopped at; ``msg``, uvicorn's own text, is not sent."""
            self._refuse(self._refusal or _NOT_HTTP)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._start_header_timer()

        def on_header(self, name: bytes, value: bytes) -> None:
            if not self._in_body:  # otherwise it is a trailer, which no proxy on the way has checked: it is dropped
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._cancel_header_timer()
            self._refusal = _objection(self.parser.get_http_version(), self.headers)
            if self._refusal is not None:
                raise _Refused
            self._in_body, self._framing_bytes = True, 0
            self._num_body_bytes = next((int(value) for name, value in self.headers if name == b"content-length"), 0)
            self._is_fresh = False
            super().on_headers_complete()
            if (self._is_leaving or self._is_surplus) and self.cycle is not None:
                self.cycle.keep_alive = False

        def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
            self._running = cycle
            super()._start_asgi_task(cycle, app)

        def on_chunk_header(self) -> None:
            self._framing_bytes = max(0, self._framing_bytes - _CHUNK_HEADER_BYTES)

        def on_body(self, body: bytes) -> None:
            self._framing_bytes = max(0, self._framing_bytes - len(body))
            self._num_body_bytes = max(0, self._num_body_bytes - len(body))
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._in_body, self._num_body_bytes = False, 0
            self._cancel_drain_timer()
            super().on_message_complete()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self._in_body and self._is_answered and self._drain_timer is None and not self.transport.is_closing():
                # The rest of the body is read for a while: closing while the client still sends would send RST, and the
                # client could lose the response.
                self._drain_timer = self.loop.call_later(config.header_timeout_s, self.transport.close)
            if self._unparsed:
                self.data_received(b"")
                if len(self.cycle.body) <= HIGH_WATER_LIMIT:  # otherwise reading resumes as the application reads it
                    self.flow.resume_reading()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._start_write_timer(self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            self._cancel_write_timer()
            super().resume_writing()

        def shutdown(self) -> None:
            """Closes the connection when it is idle; a new one has a second for the request that it was made for."""
            if self._is_fresh and not self._is_leaving:
                self._is_leaving = True
                self.loop.call_later(_FRESH_CONNECTION_S, self._close_if_fresh)
            else:
                super().shutdown()

        def _close_if_fresh(self) -> None:
            if self._is_fresh:
                self.transport.close()

        @property
        def _is_answered(self) -> bool:
            """Whether every request that was parsed has its whole response."""
            return self.cycle is None or self.cycle.response_complete

        def _refuse(self, response: bytes) -> None:
            """Closes the connection. The response is sent unless it would land in the middle of another one."""
            cycle = self.cycle
            if cycle is None or cycle.response_complete or not (cycle.response_started or self.pipeline):
                self.transport.write(response)
            self.transport.close()

        def _start_write_timer(self, num_unsent: int) -> None:
            """Resets the connection if the client reads nothing for ``write_timeout_s``; one that reads slowly goes on.

            ``num_unsent`` is the number of bytes in the write buffer now.
            """

            def check() -> None:
                left = self.transport.get_write_buffer_size()
                if left < num_unsent:
                    self._start_write_timer(left)
                else:
                    connection = self.transport.get_extra_info("socket")
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_OFF)
                    self.transport.abort()

            self._write_timer = self.loop.call_later(config.write_timeout_s, check)

        def _start_header_timer(self) -> None:
            if self._header_timer is None:
                self._header_bytes = 0
                timeout_s = config.header_timeout_s
                if self._is_surplus:
                    timeout_s = min(_SURPLUS_HEADER_TIMEOUT_S, timeout_s)
                self._header_timer = self.loop.call_later(timeout_s, self.transport.close)

        def _cancel_header_timer(self) -> None:
            if self._header_timer is not None:
                self._header_timer.cancel()
                self._header_timer = None

        def _cancel_drain_timer(self) -> None:
            if self._drain_timer is not None:
                self._drain_timer.cancel()
                self._drain_timer = None

        def _cancel_write_timer(self) -> None:
            if self._write_timer is not None:
                self._write_timer.cancel()
                self._write_timer = None

    return Protocol
