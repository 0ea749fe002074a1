"""One event of a WebSocket as a request of its own: key, limits, log line and metrics. Knows no response.

Every event is a request to the gateway's other parts, with the headers of the WebSocket's handshake, so that it is
admitted, limited and counted as one that came by itself.
"""

import time

import structlog
from starlette.requests import Request
from starlette.types import Message, Scope

from axon.errors import AxonError
from axon.gateway.http.errors import Internal, status_of
from axon.gateway.http.held_bodies import release_body
from axon.gateway.http.middleware import ERROR, Middleware
from axon.gateway.http.scopes import NEEDED, require_scope
from axon.gateway.http.socket_exchange import MIDDLEWARE
from axon.gateway.responses.socket_events import RETRIEVE, ClientEvent
from axon.gateway.turn.counting import counted_error

_OF_ONE_REQUEST = frozenset(
    {b"idempotency-key", b"last-event-id", b"content-length", b"content-encoding", b"connection", b"upgrade"}
)
"""Headers of the handshake that say nothing of the events."""
_KEPT = ("app", "path", "client", "route", "axon.identity")
_READS = NEEDED["GET /v1/responses/{response_id}"]
_ASKS = NEEDED["POST /v1/responses"]

_logger = structlog.get_logger("axon.gateway")


class SocketCall:
    """One event on its way through the gateway."""

    def __init__(self, socket: Scope, event: ClientEvent) -> None:
        """``socket`` is the WebSocket's own scope."""
        self.event = event
        self._middleware: Middleware = socket[MIDDLEWARE]
        self._started = time.perf_counter()
        self._is_counted = False
        headers = [(name, value) for name, value in socket["headers"] if name not in _OF_ONE_REQUEST]
        self._scope: Scope = {
            **{name: socket[name] for name in _KEPT if name in socket},
            "type": "http",
            "method": "POST",
            "query_string": b"",
            "headers": headers,
        }
        self.request = Request(self._scope, _nothing)

    async def admit(self) -> None:
        """Authenticates the event with the handshake's key, as it is valid now; raises if it may not go on."""
        if self.event.idempotency_key:
            key = self.event.idempotency_key.encode()
            self._scope["headers"] = [*self._scope["headers"], (b"idempotency-key", key)]
            self.request = Request(self._scope, _nothing)
        await self._middleware.admit(self._scope)
        needed = _READS if self.event.type == RETRIEVE else _ASKS
        require_scope(needed, self._scope["axon.identity"].scopes)

    def take_body(self) -> bytes:
        """Returns the event's body and forgets it, so that it does not stay in memory as long as its response."""
        body, self.event = self.event.body, ClientEvent(type=self.event.type, stream_id=self.event.stream_id)
        return body

    async def refused(self, error: AxonError) -> AxonError:
        """Counts the event as refused; returns the error to answer with."""
        error = await counted_error(self.request, error)
        self._scope[ERROR] = error
        self.count(status_of(error))
        return error

    def failed(self) -> AxonError:
        """Logs the exception that is being handled; returns the error to answer with."""
        _logger.exception("request.failed")
        return Internal()

    def count(self, status: int) -> None:
        """Counts the event in the metrics and logs it, once."""
        if not self._is_counted:
            self._is_counted = True
            self._middleware.count({**self._scope, "method": "WS"}, status, self._started)

    def release(self) -> None:
        """Takes the event's body out of the count of those that are held."""
        release_body(self._scope)


async def _nothing() -> Message:
    """Stands for the rest of a body: an event is here as a whole."""
    return {"type": "http.disconnect"}
