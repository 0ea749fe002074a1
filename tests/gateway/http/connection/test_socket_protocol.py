"""One WebSocket by itself, over a real socket; ``tests/security/test_socket.py`` has its timeouts and bounds."""

import contextlib

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from axon.gateway.http.connection import socket_protocol
from tests.gateway.http.serving import serving
from tests.journeys.server import wait_until
from tests.security.raw import PATIENCE_S


@pytest.mark.parametrize("num_after", [0, 1, 50])
def test_a_connection_ends_when_the_client_has_answered_the_close(
    num_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It did not: the server waited for its timeout. Messages that the client has sent meanwhile are dropped."""
    monkeypatch.setattr(socket_protocol, "_CLOSE_TIMEOUT_S", 10 * PATIENCE_S)
    with (
        serving(socket_ping_s=0) as served,
        connect(f"ws://127.0.0.1:{served.address[1]}/v1/responses", close_timeout=PATIENCE_S) as line,
    ):
        with contextlib.suppress(ConnectionClosedError):
            for _ in range(1 + num_after):
                line.send("hello")
        with pytest.raises(ConnectionClosedError) as closed:
            line.recv(timeout=PATIENCE_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
        wait_until(lambda: not served.server.server_state.connections, "the server has closed it")
