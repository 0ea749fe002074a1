"""Many WebSockets at once: idle ones and ones that read nothing cost little memory, and others are served."""

import contextlib
import json
import socket
from pathlib import Path

import pytest
from websockets.sync.connection import Connection

from tests import long
from tests.journeys.server import Server, running, wait_until
from tests.security.raw import connected
from tests.security.test_socket import ASK, TEXT, frame, handshake, opened

_PATIENCE_S = 300.0
_IDLE_KB, _SLOW_KB, _REST_KB = 200, 1000, 30_000
"""What a connection of each kind may add to the server's memory, and what anything may."""


def memory_kb(server: Server) -> int:
    """Resident memory of the server's process."""
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def read_to_the_end(line: Connection) -> None:
    """Reads the events of a response that is cut off by its length."""
    while "response.incomplete" not in str(line.recv(timeout=_PATIENCE_S)):
        pass


def slow(server: Server, stack: contextlib.ExitStack) -> socket.socket:
    """A client that asks for much in two lanes and reads nothing."""
    line = stack.enter_context(connected(server))
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    asks = [{**ASK, "stream_id": str(lane), "max_output_tokens": 1500} for lane in range(2)]
    line.sendall(handshake(server.key) + b"".join(frame(TEXT, json.dumps(each).encode()) for each in asks))
    return line


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_idle_sockets_and_slow_readers_cost_little(tmp_path: Path) -> None:
    num_idle, num_slow = round(long.share(500)), round(long.share(50))
    settings = {"engine_kind": "echo", "gateway_max_tenant_sockets": 1000, "gateway_write_timeout_s": 600}
    with running(tmp_path / "data", **settings) as server, contextlib.ExitStack() as stack:
        with opened(server, server.key) as line:
            line.send(json.dumps({**ASK, "max_output_tokens": 1500}))
            read_to_the_end(line)
        before = memory_kb(server)
        for _ in range(num_idle):
            stack.enter_context(opened(server, server.key))
        for _ in range(num_slow):
            slow(server, stack)
        wait_until(lambda: server.metric("axon_sockets") == num_idle + num_slow, "all are open")
        with opened(server, server.key) as line:  # behind the slow ones' responses, and served all the same
            line.send(json.dumps({**ASK, "max_output_tokens": 50}))
            read_to_the_end(line)
        assert memory_kb(server) - before < num_idle * _IDLE_KB + num_slow * _SLOW_KB + _REST_KB
