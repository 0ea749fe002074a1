"""One gRPC call as a request to the gateway's other parts: key, limits, deadline, log line, metrics. Knows no method.

    admit ─► read ─► (the method) ─► begin ─► write … ─► done, or refused with a status

The call is authenticated before its message is read. Its ASGI scope is what an HTTP request with the same key would
have, so that it is admitted, limited and counted as one.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import structlog
from google.protobuf.message import Message
from grpc.aio import EOF, BaseError, ServicerContext
from starlette.requests import Request
from starlette.types import Message as AsgiMessage
from starlette.types import Scope as AsgiScope

from axon.domain.tenants.key import Scope
from axon.errors import AxonError, Draining, InvalidInput, Overloaded
from axon.gateway.grpc.metadata import address_of, headers_of
from axon.gateway.grpc.parts import GrpcParts
from axon.gateway.grpc.status import status_of
from axon.gateway.grpc.wire import M, decoded
from axon.gateway.http.errors import ClientLeft, Timeout
from axon.gateway.http.errors import status_of as http_status
from axon.gateway.http.held_bodies import release_body
from axon.gateway.http.middleware import ERROR, METERS, REQUEST_ID, limit_headers, request_id_of
from axon.gateway.http.scopes import require_scope
from axon.gateway.turn.context import Gateway
from axon.gateway.turn.counting import counted_error
from axon.gateway.turn.headers import STREAM_HEADER
from axon.gateway.turn.job import DEADLINE
from axon.gateway.turn.sse import until_disconnected

T = TypeVar("T")
Context = ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class _Route:
    """The route label of the metrics and the log line."""

    path: str


class GrpcCall:
    """One call on its way through the gateway."""

    def __init__(self, parts: GrpcParts, path: str, context: Context, *, is_probe: bool = False) -> None:
        """``is_probe`` says that the call needs no key and no log line."""
        self._parts, self._context, self._is_probe = parts, context, is_probe
        self._left = asyncio.Event()
        self._started = time.perf_counter()
        self._is_counted = False
        self._has_begun = False
        self._num_bytes = 0
        self._scope: AsgiScope = {
            "type": "http",
            "http_version": "2",
            "app": parts.app,
            "method": "GET",  # what a server that drains still takes; ``check_asks`` refuses the rest
            "path": path,
            "query_string": b"",
            "headers": headers_of(context.invocation_metadata() or ()),
            "client": (address_of(context.peer()), 0),
            "route": _Route(path),
        }
        self._scope[REQUEST_ID] = request_id_of(self._scope)
        self.request = Request(self._scope, self._disconnected)

    @property
    def gateway(self) -> Gateway:
        return self._parts.gateway

    @property
    def version(self) -> str:
        """The server's release."""
        return self._parts.version

    @property
    def request_id(self) -> str:
        return str(self._scope[REQUEST_ID])

    async def admit(self, needed: frozenset[Scope]) -> None:
        """Authenticates the call and notes its deadline; raises if it may not go on."""
        if (left_s := self._context.time_remaining()) is not None:
            self._scope[DEADLINE] = self.gateway.clock.now() + left_s
        if not needed:
            return
        await self._parts.middleware.admit(self._scope)
        structlog.contextvars.bind_contextvars(tenant_id=self._scope["axon.identity"].tenant)
        self.check_scope(needed)

    def check_scope(self, needed: frozenset[Scope]) -> None:
        """Raises ``Forbidden`` if the key has none of the scopes that are needed."""
        require_scope(needed, self._scope["axon.identity"].scopes)

    def check_takes(self) -> None:
        """Raises ``Draining`` if the server takes no more work."""
        if not self._parts.middleware.is_taking:
            raise Draining(retry_after_s=5.0)

    async def read(self, kind: type[M]) -> M:
        """Returns the call's message, whose bytes count as held until the call is released.

        Raises ``Timeout`` if it does not come in time, ``Overloaded`` if there is no room for it, ``InvalidInput`` if
        it is none of this kind.
        """
        data = await self._bytes()
        self._num_bytes = len(data)
        if self._scope.get("axon.identity") is not None:
            self.gateway.bodies.hold(self._scope, len(data))
        return await self.in_turn(partial(decoded, kind, data))

    async def in_turn(self, work: Callable[[], T]) -> T:
        """Returns what ``work`` makes of the call's message, in a thread if that is large."""
        return await self.gateway.bodies.in_turn(self._num_bytes, work)

    async def _bytes(self) -> bytes:
        identity, is_read = self._scope.get("axon.identity"), False
        try:
            async with asyncio.timeout(self.gateway.config.body_timeout_s):
                async with self._parts.reading.room(identity.tenant if identity else ""):
                    is_read = True
                    data = await self.next_bytes()
        except TimeoutError:
            raise (Timeout() if is_read else Overloaded(retry_after_s=1.0)) from None
        if data is None:
            raise ClientLeft() if self._left.is_set() else InvalidInput("The call has no message.")
        return data

    async def next_bytes(self) -> bytes | None:
        """Returns the next message as it came; None if the client sends no more."""
        try:
            data = await self._context.read()
        except BaseError:
            raise ClientLeft() from None
        return None if data is EOF else data

    async def begin(self, stream_id: str = "") -> None:
        """Sends the metadata that come before the first message: ids, and what is left of the tenant's limits."""
        if self._has_begun:
            return
        self._has_begun = True
        limits = [(name.decode(), value.decode()) for name, value in limit_headers(self._scope.get(METERS))]
        stream = [(STREAM_HEADER, stream_id)] if stream_id else []
        try:
            await self._context.send_initial_metadata((("x-request-id", self.request_id), *stream, *limits))
        except BaseError:
            raise ClientLeft() from None

    async def respond(self, message: Message, *, stream_id: str = "") -> None:
        """Sends the only message of a call."""
        await self.begin(stream_id)
        await self.write(message.SerializeToString())

    async def write(self, message: bytes) -> None:
        """Sends a message; waits while the client reads too slowly, and raises ``ClientLeft`` if it reads nothing for
        too long."""
        try:
            async with asyncio.timeout(self.gateway.config.write_timeout_s):
                await self._context.write(message)
        except (BaseError, TimeoutError):
            raise ClientLeft() from None

    async def stream(self, messages: AsyncGenerator[bytes, None]) -> None:
        """Sends messages until they end or the client leaves."""
        await until_disconnected(self._write_all(messages), self._disconnected)

    async def _write_all(self, messages: AsyncGenerator[bytes, None]) -> None:
        async for message in messages:
            if message:
                await self.write(message)

    def leave(self) -> None:
        """The client has left, or its deadline has passed."""
        self._left.set()

    @property
    def has_left(self) -> bool:
        return self._left.is_set()

    async def refuse(self, error: AxonError) -> None:
        """Ends the call with the status of an error, and counts it."""
        error = await counted_error(self.request, error) if "axon.identity" in self._scope else error
        self._scope[ERROR] = error
        status = status_of(error, self.request_id)
        self._context.set_code(status.code)
        self._context.set_details(status.details)
        self._context.set_trailing_metadata(status.trailing)
        self.count(http_status(error))

    def count(self, status: int) -> None:
        """Counts the call in the metrics and logs it, once, by the status that it would have over HTTP."""
        if not self._is_counted:
            self._is_counted = True
            scope = {**self._scope, "method": "GRPC"}
            self._parts.middleware.count(scope, status, self._started, is_probe=self._is_probe)

    def release(self) -> None:
        """Takes the call's message out of the count of those that are held."""
        release_body(self._scope)

    async def _disconnected(self) -> AsgiMessage:
        """Returns when the client has left: what an HTTP request receives behind its body."""
        await self._left.wait()
        return {"type": "http.disconnect"}
