"""The protocol of one WebSocket: uvicorn's, with timeouts and bounds that it lacks. Knows no message's meaning.

    handshake ─► accepted, or an HTTP error ─► messages both ways ─► close

Bytes that come before the handshake is answered wait. After it one message at a time is taken from the bytes received,
so that a burst of small messages costs no more memory than its bytes.
"""

import asyncio
import logging
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Close, CloseCode, Frame
from websockets.http11 import Request

from axon.errors import AxonError
from axon.gateway.config import GatewayConfig
from axon.gateway.http.connection.objections import NOT_HTTP
from axon.gateway.http.connection.write_timer import WriteTimer
from axon.gateway.http.held_bodies import HeldBody

SOCKET_PATHS = frozenset({b"/v1/responses"})
"""Paths that take a WebSocket."""
ARRIVING = "axon.arriving"
"""Key of the ASGI scope: an ``Arriving``, by which the application has unfinished messages counted."""
LEAVING = "axon.leaving"
"""Key of the ASGI scope: an ``asyncio.Event`` that is set when the server shuts down."""
_PIECE_BYTES = 4 << 10
"""The parser gets at most this many bytes at a time, since every message among them becomes an object."""
_MAX_UNPARSED_BYTES = 64 << 10
"""Beyond this many unparsed bytes the connection is not read."""
_MAX_FRAGMENTS = 1024
"""A message may come in this many frames."""
_CLOSE_TIMEOUT_S = 5.0
"""The connection is closed if the client takes longer than this to answer the server's close frame."""
_LOGGER = logging.getLogger("axon.gateway.sockets")
_LOGGER.setLevel(logging.WARNING)
"""uvicorn would log every handshake with its query, in which a client may have put anything."""


class Arriving:
    """The count of the bytes of a message that has begun and not ended; the application sets ``held``."""

    held: HeldBody | None = None

    def add(self, num_bytes: int) -> None:
        """Counts bytes that have arrived; raises as ``HeldBody.add`` does."""
        if self.held is not None:
            self.held.add(num_bytes)

    def release(self) -> None:
        """Takes the message out of the count."""
        if self.held is not None:
            self.held.release()


class SocketProtocol(WebSocketsSansIOProtocol):
    """One connection after its upgrade; ``limits`` are set by ``socket_protocol``."""

    limits: GatewayConfig
    _unparsed = b""
    """Bytes that were received and not yet given to the parser."""
    _num_partial_bytes = 0
    """Bytes that the parser has of a frame whose end has not come."""
    _message_timer: asyncio.TimerHandle | None = None
    """Fails the connection if a message that has begun does not end in time."""
    _write_timer: WriteTimer
    """Resets the connection if the client reads nothing."""

    def connection_made(self, transport: Any) -> None:
        self.logger = _LOGGER
        super().connection_made(transport)
        self.close_timeout = _CLOSE_TIMEOUT_S
        self._leaving, self._arriving = asyncio.Event(), Arriving()
        self._write_timer = WriteTimer(transport, self.loop, self.limits.write_timeout_s)

    async def run_asgi(self) -> None:
        app = self.app

        async def answered(scope: Any, receive: Any, send: Any) -> None:
            await app(scope, receive, send)
            if self.initial_response is not None:  # uvicorn would log an HTTP response to a handshake as an error
                raise ClientDisconnected

        self.app = answered
        await super().run_asgi()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_message_timer()
        self._write_timer.cancel()
        self._unparsed = b""
        self._arriving.release()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Tells the application that the server shuts down: it closes the WebSocket when its responses have ended."""
        self._leaving.set()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer.start()

    def resume_writing(self) -> None:
        self._write_timer.cancel()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:
            super().data_received(data)  # the whole handshake, as the HTTP protocol hands it over
            if not self.handshake_initiated:  # it is longer than the library takes, or has odd characters
                self.transport.write(NOT_HTTP)
                self.transport.close()
            return
        self._unparsed += data
        self._parse()

    async def receive(self) -> Any:
        message = await super().receive()
        if self.queue.empty():
            self._parse()
        return message

    def _parse(self) -> None:
        """Gives received bytes to the parser until they have made a message, which the application takes first.

        After the server's close frame messages are dropped, and the client's close frame is waited for.
        """
        while self._unparsed and self._takes_more and not self.transport.is_closing():
            piece, self._unparsed = self._unparsed[:_PIECE_BYTES], self._unparsed[_PIECE_BYTES:]
            self._num_partial_bytes += len(piece)
            super().data_received(piece)
            self._count(len(piece))
        if self.transport.is_closing():
            return
        if len(self._unparsed) > _MAX_UNPARSED_BYTES and not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()
        if not self._has_begun:
            self._cancel_message_timer()
        elif self._message_timer is None:
            self._message_timer = self.loop.call_later(self.limits.body_timeout_s, self._message_is_late)

    @property
    def _takes_more(self) -> bool:
        """Whether a message that the parser finds has a place: it is the next one, or is dropped."""
        return self.handshake_complete and (self.queue.empty() or self.close_sent)

    @property
    def _has_begun(self) -> bool:
        """Whether a message has begun and not ended."""
        return bool(self._num_partial_bytes or self.frames)

    def _count(self, num_bytes: int) -> None:
        """Counts received bytes of a message that has not ended; one that has is counted by the application."""
        if not self._has_begun:
            self._arriving.release()
            return
        try:
            self._arriving.add(num_bytes)
        except AxonError as error:
            self._fail(CloseCode.TRY_AGAIN_LATER, error.code)

    async def send(self, message: Any) -> None:
        was_complete = self.handshake_complete
        try:
            await super().send(message)
        except RuntimeError:
            if not self.close_sent:
                raise
            raise ClientDisconnected from None  # the protocol has closed the connection meanwhile
        if self.close_sent or not was_complete:
            self._parse()

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            scope: Any = self.scope
            scope.update({LEAVING: self._leaving, ARRIVING: self._arriving})

    def handle_events(self) -> None:
        for event in self.conn.events:
            if isinstance(event, Frame):
                self._num_partial_bytes -= _wire_bytes(event)
        super().handle_events()

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= _MAX_FRAGMENTS:
            self._fail(CloseCode.POLICY_VIOLATION, f"a message has at most {_MAX_FRAGMENTS} fragments")
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self._fail(CloseCode.INVALID_DATA, "a text message is not valid UTF-8")
                return
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        pong = b"".join(self.conn.data_to_send())
        if self.writable.is_set():  # a client that reads nothing is sent no pongs: they would pile up
            self.transport.write(pong)

    def handle_pong(self, event: Frame) -> None:
        if not self.transport.is_closing():
            super().handle_pong(event)

    def keepalive_timeout(self) -> None:
        """Closes the connection of a client that answers no ping; one that has much to read gets to the ping later."""
        if self.transport.get_write_buffer_size():
            self.pong_timer = None
            self.schedule_ping()
        else:
            super().keepalive_timeout()

    def _message_is_late(self) -> None:
        self._message_timer = None
        self._fail(CloseCode.POLICY_VIOLATION, "a message did not come in time")

    def _fail(self, code: int, reason: str) -> None:
        """Closes the connection with this code, without waiting for the client's answer."""
        if not self.transport.is_closing():
            self.conn.close_sent = self.conn.close_sent or Close(code, reason)
            self.conn.fail(code, reason)
            self.handle_parser_exception()

    def _cancel_message_timer(self) -> None:
        if self._message_timer is not None:
            self._message_timer.cancel()
            self._message_timer = None


def socket_protocol(config: GatewayConfig) -> type[SocketProtocol]:
    """Returns the protocol class with this configuration's timeouts and bounds."""

    class Protocol(SocketProtocol):
        limits = config

    return Protocol


def _wire_bytes(frame: Frame) -> int:
    """Returns the number of bytes that a client's frame takes: header, mask and payload, its length encoded shortest.

    A frame that encodes its length in more bytes than it needs, which RFC 6455 forbids, leaves bytes over; its
    connection is closed as one whose message does not end.
    """
    num = len(frame.data)
    return num + 6 + (0 if num < 126 else 2 if num < 1 << 16 else 8)
