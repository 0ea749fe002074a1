"""The protocol of one HTTP connection: uvicorn's, with timeouts and bounds that it lacks. Knows no route."""

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from axon.gateway.config import GatewayConfig
from axon.gateway.http.connection.half_closed import INTERIM, LEADING_ZERO, HalfClosed
from axon.gateway.http.connection.lingering import Lingering
from axon.gateway.http.connection.objections import HEADERS_TOO_LONG, NOT_HTTP, TOO_MANY_CONNECTIONS, objection
from axon.gateway.http.connection.plain_head import plain_head
from axon.gateway.http.connection.socket_protocol import SOCKET_PATHS, SocketProtocol
from axon.gateway.http.connection.write_timer import WriteTimer

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
_FULL_PIPELINE_S = 2.0
"""A connection is closed if more than 64 KB wait behind a request whose answer takes longer than this. It is not read
meanwhile, so that a client that has left would not be noticed."""


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


class _Flow(FlowControl):
    """Flow control that does not resume reading from the socket while too many bytes wait for the parser."""

    is_full = False
    """Whether more than ``HIGH_WATER_LIMIT`` received bytes wait for the parser."""

    def resume_reading(self) -> None:
        if not self.is_full:
            super().resume_reading()


class HttpProtocol(HttpToolsProtocol):
    """One connection: bounds the time and size of headers and framing, the unread response and the pipeline.

    ``limits`` are set by ``http_protocol``.

    connected ─► headers ─► body ─► next headers    each has a timeout; a response may come before the body's end

    HTTP pipelining: a request that was sent before the previous one is answered stays unparsed, because a parsed
    request costs far more memory than its bytes. Meanwhile the socket is still read, which is the only way to see
    that the client has left, until 64 KB wait: a connection holds at most that and one read (256 KB). If the answer
    then takes longer than ``_FULL_PIPELINE_S``, the connection is closed.
    """

    limits: GatewayConfig
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
    _write_timer: WriteTimer
    """Resets the connection if the client reads nothing of its response in time."""
    _pipeline_timer: asyncio.TimerHandle | None = None
    """Closes the connection if it stays full of requests that were sent ahead."""
    _half_closed: HalfClosed | None = None
    """Set when the client has closed its sending side: finds out whether it has left."""
    _refusal: bytes | None = None
    """The response to a request at which a callback stopped the parser."""
    _header_bytes = 0
    """Bytes received since the header timer was started."""
    _framing_bytes = 0
    """Bytes received after the headers that are no body: sizes of chunks, and trailers."""
    _in_body = False
    """Whether the parser is between the end of a request's headers and the end of its body."""
    _closes_after_body = False
    """Whether the connection is closed when the rest of the body is here: the response is sent, and is its last."""
    _is_fresh = True
    """Whether this connection has brought no request's headers yet."""
    _is_surplus = False
    """Whether the connection is one beyond ``max_connections``: it serves one request and is closed."""
    _is_leaving = False
    """Whether the server shuts down and this connection is open only for its first request."""
    _is_upgraded = False
    """Whether the connection is a WebSocket now, which has a protocol of its own."""
    _is_read_again = False
    """Whether the request asks for an upgrade that is not heeded: it is parsed again, as one that does not ask."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.flow = _Flow(transport)
        self._write_timer = WriteTimer(transport, self.loop, self.limits.write_timeout_s)
        self._is_surplus = len(self.connections) > self.limits.max_connections
        if len(self.connections) > self.limits.max_connections + _MAX_SURPLUS_CONNECTIONS:
            transport.write(TOO_MANY_CONNECTIONS)
            transport.close()
        self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_header_timer()
        self._cancel_drain_timer()
        self._write_timer.cancel()
        self._cancel_pipeline_timer()
        if self._half_closed is not None:
            self._half_closed.cancel()
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
            if self._is_upgraded:
                self._hand_over(data[start:])
                return
        self._unparsed = data[start:]
        self.flow.is_full = len(self._unparsed) > HIGH_WATER_LIMIT
        if self.flow.is_full:
            self.flow.pause_reading()
            self._start_pipeline_timer()

    def eof_received(self) -> Any:  # uvicorn's is None, asyncio's a bool
        """Returns whether the connection stays open: its client may have closed its sending side alone.

        HTTP/1.0 has no bytes that mean nothing, by which to find out; a client of that version has left.
        """
        cycle = self._running
        if cycle is None or self._is_answered or self._in_body or cycle.scope["http_version"] != "1.1":
            return False
        if self._half_closed is None:
            within = LEADING_ZERO if cycle.chunked_encoding else b""
            probe = within if cycle.response_started else INTERIM
            self._half_closed = HalfClosed(self.transport, self.loop, probe)
        return True

    @property
    def _can_parse(self) -> bool:
        """Whether the parser may get the next bytes: they belong to a body, or no earlier request is unanswered."""
        return not self.pipeline and (self._in_body or self._is_answered)

    def _parse(self, data: bytes) -> None:
        if self._header_timer is not None:
            self._header_bytes += len(data)
            # The piece may hold a part of the body too, and only the parser knows where the body begins.
            if (
                self._header_bytes > self.limits.max_header_bytes
                and _HEAD_END not in data[: self.limits.max_header_bytes]
            ):
                self._refuse(HEADERS_TOO_LONG)
                return
        elif self._in_body:
            self._framing_bytes += len(data)
        self._feed(data)
        if self.transport.is_closing() or self._is_upgraded:
            return
        if self._in_body and self._framing_bytes > self.limits.max_header_bytes:
            self._refuse(HEADERS_TOO_LONG)
        elif not self._in_body and self._is_answered and self.timeout_keep_alive_task is None:
            self._start_header_timer()  # empty lines between requests do not extend the keep-alive time

    def _feed(self, data: bytes) -> None:
        """Gives the parser these bytes, as uvicorn does; but a request whose upgrade is not heeded has a body too."""
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            problem = "Invalid HTTP request received."
            self.logger.warning(problem)
            self.send_400_response(problem)
        except httptools.HttpParserUpgrade as stopped:
            if not self._is_read_again:
                self.handle_websocket_upgrade()
                return
            self._is_read_again = False
            head = plain_head(self.parser.get_method(), self.url, self.parser.get_http_version(), self.headers)
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's
            self._feed(head + data[stopped.args[0] :])

    def _should_upgrade(self) -> bool:
        """Whether the request opens a WebSocket; an upgrade of any other request is not heeded."""
        is_plain = self.scope["method"] == "GET" and self.scope["http_version"] == "1.1"
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)
        is_known = self.url.partition(b"?")[0] in SOCKET_PATHS
        return is_plain and is_known and not has_body and super()._should_upgrade()

    def handle_websocket_upgrade(self) -> None:
        self._is_upgraded = True
        super().handle_websocket_upgrade()

    def _hand_over(self, data: bytes) -> None:
        """Gives the WebSocket what its client has sent behind the handshake, and tells it of a shutdown."""
        protocol = self.transport.get_protocol()
        assert isinstance(protocol, SocketProtocol)
        if self._is_leaving:
            protocol.shutdown()
        if data:
            protocol.data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Answers what the parser cannot read, or was stopped at; ``msg``, uvicorn's own text, is not sent."""
        self._refuse(self._refusal or NOT_HTTP)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._start_header_timer()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:  # otherwise it is a trailer, which no proxy on the way has checked: it is dropped
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._cancel_header_timer()
        self._refusal = objection(self.parser.get_http_version(), self.headers)
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._refusal = NOT_HTTP
        if self._refusal is not None:
            raise _Refused
        self.scope["method"], self.scope["http_version"] = method.decode(), self.parser.get_http_version()
        self._is_read_again = self.parser.should_upgrade() and not self._should_upgrade()
        if self._is_read_again:
            return
        self._in_body, self._framing_bytes = True, 0
        self._num_body_bytes = next((int(value) for name, value in self.headers if name == b"content-length"), 0)
        self._is_fresh = False
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.transport = Lingering(self.transport, self._close_after_body)  # type: ignore[assignment]
            self.cycle.keep_alive = self.cycle.keep_alive and not (self._is_leaving or self._is_surplus)

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
        if self._is_read_again:
            return
        self._in_body, self._num_body_bytes = False, 0
        self._cancel_drain_timer()
        super().on_message_complete()
        if self._closes_after_body:
            self.transport.close()

    def on_response_complete(self) -> None:
        self._cancel_pipeline_timer()
        super().on_response_complete()
        if self._in_body and self._is_answered and self._drain_timer is None and not self.transport.is_closing():
            # The rest of the body is read for a while: closing while the client still sends would send RST, and the
            # client could lose the response.
            self._drain_timer = self.loop.call_later(self.limits.header_timeout_s, self.transport.close)
        if self._unparsed:
            self.data_received(b"")
            if len(self.cycle.body) <= HIGH_WATER_LIMIT:  # otherwise reading resumes as the application reads it
                self.flow.resume_reading()
        if self._half_closed is not None and self._is_answered:
            self.transport.close()  # no other request can come

    def _close_after_body(self) -> None:
        """Closes the connection after its last response; if the body is not all here yet, its sending side alone, until
        the rest has come or ``_drain_timer`` ends."""
        if self._in_body and not self.transport.is_closing():
            self._closes_after_body = True
            if self.transport.can_write_eof():
                self.transport.write_eof()
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer.start()

    def resume_writing(self) -> None:
        self._write_timer.cancel()
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

    def _start_pipeline_timer(self) -> None:
        if self._pipeline_timer is None:
            self._pipeline_timer = self.loop.call_later(_FULL_PIPELINE_S, self.transport.abort)

    def _cancel_pipeline_timer(self) -> None:
        if self._pipeline_timer is not None:
            self._pipeline_timer.cancel()
            self._pipeline_timer = None

    def _start_header_timer(self) -> None:
        if self._header_timer is None:
            self._header_bytes = 0
            timeout_s = self.limits.header_timeout_s
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


def http_protocol(config: GatewayConfig) -> type[HttpProtocol]:
    """Returns the protocol class with this configuration's timeouts and bounds."""

    class Protocol(HttpProtocol):
        limits = config

    return Protocol
