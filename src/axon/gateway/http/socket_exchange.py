"""One WebSocket from its handshake to its end: request id, authentication, limits, log line. Knows no message.

A handshake that is refused gets an HTTP response with the same status and body as a request with that key would.
"""

import asyncio
from contextlib import suppress

import structlog
from starlette.types import Message, Receive, Scope, Send
from websockets.frames import CloseCode

from axon.errors import AxonError, Draining
from axon.gateway.http.connection.socket_protocol import LEAVING
from axon.gateway.http.errors import Internal
from axon.gateway.http.middleware import ERROR, REQUEST_ID, Middleware, request_id_of
from axon.gateway.http.refusal import refusal_of
from axon.gateway.http.tenant_places import TenantPlaces

MIDDLEWARE = "axon.middleware"
"""Key of the ASGI scope of a WebSocket: what admits each request that comes over it."""
_ACCEPTED = 101
_REFUSED_S = 5.0

_logger = structlog.get_logger("axon.gateway")


class Sockets:
    """The entry of all WebSockets of one gateway; ``places`` counts those of each tenant."""

    def __init__(self, *, max_of_tenant: int) -> None:
        message = f"You have {max_of_tenant} WebSockets open at this gateway, which is the limit; close some."
        self.places = TenantPlaces(max_of_tenant, message, code="too_many_sockets", retry_after_s=_REFUSED_S)

    async def serve(self, middleware: Middleware, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs one WebSocket to its end."""
        await _SocketExchange(self, middleware, scope, receive, send).run()


class _SocketExchange:
    """One WebSocket: admits it, forwards it, and refuses its handshake if either raises before it is accepted."""

    def __init__(self, sockets: Sockets, middleware: Middleware, scope: Scope, receive: Receive, send: Send) -> None:
        self._sockets, self._middleware = sockets, middleware
        self._scope, self._receive, self._send = scope, receive, send
        self._status = 0
        self._request_id = request_id_of(scope)
        scope.update({"method": "GET", REQUEST_ID: self._request_id, MIDDLEWARE: middleware})

    async def run(self) -> None:
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=self._request_id)
        try:
            await self._middleware.admit(self._scope)
            if self._scope[LEAVING].is_set() or not self._middleware.is_taking:
                raise Draining(retry_after_s=5.0)
            await self._forward(self._scope["axon.identity"].tenant)
        except AxonError as error:
            await self._refuse(error)
        except asyncio.CancelledError:
            await self._close(CloseCode.GOING_AWAY)  # the server ends its tasks; there is nobody to raise it to
        except Exception:
            _logger.exception("request.failed")
            await self._refuse(Internal())
        finally:
            self._middleware.count(self._scope, self._status or 499, None)

    async def _forward(self, tenant: str) -> None:
        structlog.contextvars.bind_contextvars(tenant_id=tenant)
        with self._sockets.places.held(tenant), self._middleware.metrics.requests.sockets.track_inprogress():
            await self._middleware.forward(self._scope, self._receive, self._answer)

    async def _refuse(self, error: AxonError) -> None:
        """Answers the handshake with an HTTP response; a WebSocket that is open already is closed."""
        if self._status:
            await self._close(CloseCode.INTERNAL_ERROR)
            return
        self._scope[ERROR] = error
        refusal = refusal_of(error, self._scope["path"], self._request_id)
        self._status = refusal.status
        headers = {**refusal.headers, "x-request-id": self._request_id}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        with suppress(OSError):  # the client has left
            await self._send({"type": "websocket.http.response.start", "status": refusal.status, "headers": raw})
            await self._send({"type": "websocket.http.response.body", "body": refusal.body})

    async def _close(self, code: int) -> None:
        with suppress(OSError, RuntimeError):  # the client has left, or the WebSocket is closed
            await self._send({"type": "websocket.close", "code": code})

    async def _answer(self, message: Message) -> None:
        is_accepted = message["type"] == "websocket.accept"
        if is_accepted:
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self._request_id.encode())]
        await self._send(message)
        if is_accepted:
            self._status = _ACCEPTED
