"""The HTTP server: uvicorn, with the deadline for headers that it lacks and signals left to the process's owner."""

import asyncio
import contextlib
import math
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from axon.errors import AxonError, InvalidInput, Overloaded
from axon.gateway.config import GatewayConfig
from axon.gateway.http.errors import encoded, headers_of
from axon.gateway.http.middleware import Middleware

_FRESH_S = 1.0
"""How long a connection that has said nothing yet may go on when the server stops listening."""
_SURPLUS_S = 2.0
"""How long a connection beyond the most may take for its request's headers."""
_MOST_SURPLUS = 500
"""So many of them; each costs a descriptor. The next ones are closed at once."""
_CHUNK_BYTES = 16
"""What the size of a chunk may take."""
_HEAD_END = b"\r\n\r\n"
"""The empty line after a request's headers, and after a chunked body."""
_MIN_PIECE_BYTES = 24
"""The parser gets at least this much at a time, so that a flood of empty lines costs little; shorter than a request."""
_AT_ONCE = struct.pack("ii", 1, 0)
"""The system forgets what it has not sent yet: it would keep megabytes for whoever takes nothing."""


def _answer(status: bytes, problem: AxonError) -> bytes:
    """A whole answer, for what never becomes a request."""
    body = encoded(problem)
    told = "".join(f"{name}: {value}\r\n" for name, value in headers_of(problem).items()).encode()
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\nconnection: close\r\n%bcontent-length: %d\r\n\r\n"
    return head % (status, told, len(body)) + body


_TOO_LONG = _answer(
    b"431 Request Header Fields Too Large",
    InvalidInput("The request's headers are too long.", code="headers_too_long"),
)
_NOT_HTTP = _answer(b"400 Bad Request", InvalidInput("This is no HTTP request that can be read.", code="invalid_http"))
_NOT_HTTP_1 = _answer(
    b"505 HTTP Version Not Supported",
    InvalidInput("This server speaks HTTP/1.1 and HTTP/1.0.", code="http_version_not_supported"),
)
_HOSTS = _answer(b"400 Bad Request", InvalidInput("An HTTP/1.1 request has one Host header.", code="invalid_host"))
_CODING = _answer(
    b"501 Not Implemented",
    InvalidInput("The only Transfer-Encoding that is read here is 'chunked'.", code="unsupported_transfer_encoding"),
)
_EXPECTATION = _answer(
    b"417 Expectation Failed",
    InvalidInput("The only Expect that is met here is '100-continue'.", code="unsupported_expectation"),
)
_TOO_MANY = _answer(b"503 Service Unavailable", Overloaded(retry_after_s=1.0))


def _objection(version: str, headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The answer to a request that HTTP/1.1 (RFC 9112) forbids although the parser can read it; None for a good one."""
    if version not in ("1.0", "1.1"):
        return _NOT_HTTP if version == "0.9" else _NOT_HTTP_1
    values: dict[bytes, list[bytes]] = {b"host": [], b"transfer-encoding": [], b"expect": []}
    for name, value in headers:
        if name in values:
            values[name].append(value.strip().lower())
    if len(values[b"host"]) > 1 or (version == "1.1" and not values[b"host"]):
        return _HOSTS
    if codings := values[b"transfer-encoding"]:
        if version == "1.0":
            return _NOT_HTTP
        if codings != [b"chunked"]:
            return _CODING
    if any(value != b"100-continue" for value in values[b"expect"]):
        return _EXPECTATION
    return None


class _Refused(Exception):
    """Stops the parser: the request is answered before it becomes one."""


def _piece_end(data: bytes, start: int, num_body_bytes: int) -> int:
    """Where the parser must stop so that it sees at most one request's end of headers.

    ``num_body_bytes``: how many bytes of a body with a known length are still to come.
    """
    if num_body_bytes:
        return min(len(data), start + num_body_bytes)
    found = data.find(_HEAD_END, start + _MIN_PIECE_BYTES - len(_HEAD_END))
    return len(data) if found < 0 else found + len(_HEAD_END)


def _waiting(listener: socket.socket, most: int) -> Iterator[socket.socket]:
    """The connections that the system has made and nobody has accepted yet, at most so many."""
    with contextlib.suppress(OSError):  # there are no more of them, or the listener is closed
        for _ in range(most):
            yield listener.accept()[0]


class _Flow(FlowControl):
    """Flow control that reads nothing from the socket while much of what was received is held back from the parser."""

    is_full = False

    def resume_reading(self) -> None:
        if not self.is_full:
            super().resume_reading()


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

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops listening, and answers whoever has connected before: a closed listener resets whom it has not accepted.

        nginx sends no POST twice after such a reset, for it may have been accepted: its client would see a failure.
        """
        waiting = [line for each in sockets or () for line in _waiting(each, self.config.backlog)]
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for line in waiting:
            await loop.connect_accepted_socket(self._protocol, line)
        await asyncio.sleep(0)  # what was accepted a moment ago is known to the server then, and told of its end
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_server(app: Middleware, config: GatewayConfig, *, grace_s: float = 5.0) -> Server:
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
            timeout_keep_alive=config.keep_alive_s,
            timeout_graceful_shutdown=math.ceil(grace_s),
        )
    )


def _protocol(config: GatewayConfig) -> type[HttpToolsProtocol]:
    class Protocol(HttpToolsProtocol):
        """Bounds what the parser leaves open: how long and how large anything but a body may be, and how many ask.

        connected ─► headers ─► body ─► next headers      each with a deadline; an answer may come before the body's end

        HTTP pipelining: requests sent ahead stay unparsed until the one before them is answered; a parsed request costs
        far more memory than its bytes. The socket is read on meanwhile, or nobody would see the client leave, until
        64 KB of them are here: a connection holds at most that and one read (256 KB).
        """

        flow: _Flow
        _held = b""
        """Received, and not yet given to the parser."""
        _running: RequestResponseCycle | None = None
        """The request that is being answered; ``cycle`` is the last one that was parsed."""
        _num_body_bytes = 0
        """What is still to come of a body with a known length."""

        _deadline: asyncio.TimerHandle | None = None
        """By then a request's headers are here."""
        _rest: asyncio.TimerHandle | None = None
        """By then the rest of a body is here that nobody waits for any more."""
        _stall: asyncio.TimerHandle | None = None
        """By then the client has taken something of its answer."""
        _objection: bytes | None = None
        """Answer to a request that stopped the parser."""
        _header_bytes = 0
        _framing_bytes = 0
        """What came since the headers' end and is no body: sizes of chunks, trailers."""
        _in_body = False
        _is_fresh = True
        _is_surplus = False
        _is_leaving = False

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.flow = _Flow(transport)
            self._is_surplus = len(self.connections) > config.max_connections
            if len(self.connections) > config.max_connections + _MOST_SURPLUS:
                transport.write(_TOO_MANY)
                transport.close()
            self._arm()

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            self._end_rest()
            self._end_stall()
            self._held = b""
            self.pipeline.clear()
            if self._running is not None and not self._running.response_complete:
                self._running.disconnected = True
                self._running.message_event.set()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            data, start = self._held + data, 0
            while start < len(data) and self._can_parse and not self.transport.is_closing():
                end = _piece_end(data, start, self._num_body_bytes)
                self._parse(data[start:end])
                start = end
            self._held = data[start:]
            self.flow.is_full = len(self._held) > HIGH_WATER_LIMIT
            if self.flow.is_full:
                self.flow.pause_reading()

        @property
        def _can_parse(self) -> bool:
            """Whether the next bytes are not those of a request that has to wait for another one's answer."""
            return not self.pipeline and (self._in_body or self._is_answered)

        def _parse(self, data: bytes) -> None:
            if self._deadline is not None:
                self._header_bytes += len(data)
                # What comes in one piece may hold a body too: only the parser knows where it begins.
                if self._header_bytes > config.max_header_bytes and _HEAD_END not in data[: config.max_header_bytes]:
                    self._refuse(_TOO_LONG)
                    return
            elif self._in_body:
                self._framing_bytes += len(data)
            super().data_received(data)
            if self.transport.is_closing():
                return
            if self._in_body and self._framing_bytes > config.max_header_bytes:
                self._refuse(_TOO_LONG)
            elif not self._in_body and self._is_answered and self.timeout_keep_alive_task is None:
                self._arm()  # empty lines between requests are no sign of life

        def send_400_response(self, msg: str) -> None:
            """For what the parser cannot read or was stopped at; ``msg`` says no more than that."""
            self._refuse(self._objection or _NOT_HTTP)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._arm()

        def on_header(self, name: bytes, value: bytes) -> None:
            if not self._in_body:  # else a trailer: what comes after the body was looked at by nobody on the way here
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._disarm()
            self._objection = _objection(self.parser.get_http_version(), self.headers)
            if self._objection is not None:
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
            self._framing_bytes = max(0, self._framing_bytes - _CHUNK_BYTES)

        def on_body(self, body: bytes) -> None:
            self._framing_bytes = max(0, self._framing_bytes - len(body))
            self._num_body_bytes = max(0, self._num_body_bytes - len(body))
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._in_body, self._num_body_bytes = False, 0
            self._end_rest()
            super().on_message_complete()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self._in_body and self._is_answered and self._rest is None and not self.transport.is_closing():
                # It is read on for a while: to close at once could take the answer from who is still sending.
                self._rest = self.loop.call_later(config.header_timeout_s, self.transport.close)
            if self._held:
                self.data_received(b"")
                if len(self.cycle.body) <= HIGH_WATER_LIMIT:  # else it is read on as the application takes the body
                    self.flow.resume_reading()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._watch_reader(self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            self._end_stall()
            super().resume_writing()

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

        @property
        def _is_answered(self) -> bool:
            """Every request so far."""
            return self.cycle is None or self.cycle.response_complete

        def _refuse(self, answer: bytes) -> None:
            """Ends the connection, with a word unless it would stand in the middle of another answer."""
            cycle = self.cycle
            if cycle is None or cycle.response_complete or not (cycle.response_started or self.pipeline):
                self.transport.write(answer)
            self.transport.close()

        def _watch_reader(self, num_unread: int) -> None:
            """Cuts a client off that takes nothing, and lets one that takes little go on."""

            def look() -> None:
                left = self.transport.get_write_buffer_size()
                if left < num_unread:
                    self._watch_reader(left)
                else:
                    line = self.transport.get_extra_info("socket")
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                    self.transport.abort()

            self._stall = self.loop.call_later(config.write_timeout_s, look)

        def _arm(self) -> None:
            if self._deadline is None:
                self._header_bytes = 0
                timeout_s = min(_SURPLUS_S, config.header_timeout_s) if self._is_surplus else config.header_timeout_s
                self._deadline = self.loop.call_later(timeout_s, self.transport.close)

        def _disarm(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _end_rest(self) -> None:
            if self._rest is not None:
                self._rest.cancel()
                self._rest = None

        def _end_stall(self) -> None:
            if self._stall is not None:
                self._stall.cancel()
                self._stall = None

    return Protocol
