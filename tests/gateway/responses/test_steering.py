"""A steer event is a request as any other: its key is looked up, it is counted and limited, and then refused."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected

from axon.domain.tenants.key import HOLDER
from axon.errors import AxonError, LimitReached, Unauthenticated
from axon.gateway.http.auth import Identity
from axon.gateway.http.connection.socket_protocol import ARRIVING, LEAVING
from axon.gateway.http.socket_exchange import MIDDLEWARE
from axon.gateway.responses.socket import serve_responses
from axon.runtime.clock import SystemClock

STEER = json.dumps({"type": "response.steer", "previous_response_id": "resp_1", "input": "faster"})


class Gateway:
    """A gateway that admits and limits as the test says, and notes what it was asked."""

    def __init__(self, *, refuses: AxonError | None = None, limits: AxonError | None = None) -> None:
        self._refuses, self._limits = refuses, limits
        self.num_counted = 0
        self.statuses: list[int] = []
        self.sent: list[dict[str, Any]] = []
        self.has_left = False
        """Whether the client is gone before the WebSocket is accepted."""
        self._answered = asyncio.Event()
        self.config = SimpleNamespace(socket_lifetime_s=3600.0)
        self.clock = SystemClock()
        self.bodies = SimpleNamespace(arriving=lambda _: None, hold=lambda *_: None)
        self.opening = SimpleNamespace(count=self._count_request)

    async def serve(self, text: str) -> None:
        """Serves a WebSocket whose client sends one message, and leaves when it is answered."""
        messages = iter([{"type": "websocket.connect"}, {"type": "websocket.receive", "text": text}])
        scope = {
            "type": "websocket",
            "headers": [],
            "query_string": b"",
            "app": SimpleNamespace(state=SimpleNamespace(gateway=self)),
            "axon.identity": Identity("key", "acme", HOLDER),
            MIDDLEWARE: SimpleNamespace(admit=self._admit, count=self._count),
            LEAVING: asyncio.Event(),
            ARRIVING: SimpleNamespace(held=None),
        }

        async def receive() -> Any:
            if (message := next(messages, None)) is not None:
                return message
            await self._answered.wait()
            return {"type": "websocket.disconnect"}

        async with asyncio.timeout(60):
            await serve_responses(scope, receive, self._send)

    async def _send(self, message: Any) -> None:
        if self.has_left:
            raise ClientDisconnected
        if message["type"] == "websocket.send":
            self.sent.append(json.loads(message["text"]))
            self._answered.set()

    async def _admit(self, scope: Any) -> None:
        if self._refuses:
            raise self._refuses

    async def _count_request(self, *_: Any) -> None:
        self.num_counted += 1
        if self._limits:
            raise self._limits

    def _count(self, scope: Any, status: int, started: float) -> None:
        self.statuses.append(status)


async def test_a_steer_event_is_counted_and_logged_before_it_is_refused() -> None:
    gateway = Gateway()
    await gateway.serve(STEER)
    [event] = gateway.sent
    assert (event["type"], event["steer"]["input"]) == ("response.steer.failed", "faster")
    assert (gateway.num_counted, gateway.statuses) == (1, [400])


async def test_a_steer_event_beyond_the_tenants_limit_is_refused_as_such() -> None:
    gateway = Gateway(limits=LimitReached("Too many.", retry_after_s=1.0))
    await gateway.serve(STEER)
    assert [each["type"] for each in gateway.sent] == ["error"]
    assert gateway.statuses == [429]


async def test_a_steer_event_with_a_key_that_was_revoked_closes_the_socket() -> None:
    gateway = Gateway(refuses=Unauthenticated())
    await gateway.serve(STEER)
    assert [each["type"] for each in gateway.sent] == ["error"]
    assert (gateway.num_counted, gateway.statuses) == (0, [401])


async def test_a_client_that_leaves_before_its_websocket_is_accepted_is_no_defect() -> None:
    gateway = Gateway()
    gateway.has_left = True
    await gateway.serve(STEER)
    assert gateway.sent == []
