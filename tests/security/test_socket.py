"""Hostile WebSockets: bad frames, foreign responses, keys that are revoked, clients that read nothing."""

import base64
import contextlib
import json
import os
import socket
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.sync.connection import Connection

from tests.journeys.server import Server, running, wait_until
from tests.security.keyring import Keyring
from tests.security.raw import PATIENCE_S, connected

TEXT, BINARY, CONTINUED, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
ASK = {"type": "response.create", "model": "echo", "input": "hello there " * 20, "ignore_eos": True}


def opened(server: Server, key: str, query: str = "") -> ClientConnection:
    address = server.url.replace("http://", "ws://") + "/v1/responses" + query
    return connect(address, additional_headers={"Authorization": f"Bearer {key}"}, open_timeout=60)


def frame(opcode: int, data: bytes = b"", *, fin: bool = True, masked: bool = True, reserved: int = 0) -> bytes:
    """A frame by hand; ``reserved`` are its reserved bits."""
    head = bytes([(0x80 if fin else 0) | reserved << 4 | opcode])
    mask = b"\1\2\3\4" if masked else b""
    bit = 0x80 if masked else 0
    if len(data) < 126:
        head += bytes([bit | len(data)])
    elif len(data) < 1 << 16:
        head += bytes([bit | 126]) + struct.pack("!H", len(data))
    else:
        head += bytes([bit | 127]) + struct.pack("!Q", len(data))
    if masked:
        data = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
    return head + mask + data


def handshake(key: str, *more: str) -> bytes:
    lines = [
        "GET /v1/responses HTTP/1.1",
        "Host: axon",
        f"Authorization: Bearer {key}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Version: 13",
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


@contextlib.contextmanager
def raw(server: Server, key: str) -> Iterator[socket.socket]:
    """A connection whose handshake is over."""
    with connected(server) as line:
        line.sendall(handshake(key))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += line.recv(1)
        assert b" 101 " in head, head
        yield line


def read_on(line: Connection) -> None:
    """Reads until the connection is closed, which raises."""
    while True:
        line.recv(timeout=PATIENCE_S)


def closed_with(line: socket.socket) -> int:
    """The code of the server's close frame, after which it closes the connection."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := line.recv(1 << 16):
            data += piece
    while data:
        opcode, length = data[0] & 0x0F, data[1]
        start = 2
        if length == 126:
            (length,), start = struct.unpack("!H", data[2:4]), 4
        if opcode == CLOSE:
            return int(struct.unpack("!H", data[start : start + 2])[0])
        data = data[start + length :]
    raise AssertionError("no close frame came")


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with short limits."""
    limits: dict[str, Any] = {
        "gateway_max_body_bytes": 1 << 16,
        "gateway_body_timeout_s": 0.5,
        "gateway_socket_ping_s": 0.5,
        "gateway_write_timeout_s": 1.0,
        "gateway_max_tenant_sockets": 1000,
    }
    in_query = "a-word-in-the-query"
    with running(tmp_path_factory.mktemp("strict") / "data", engine_kind="echo", **limits) as server:
        yield server
        assert in_query not in server.log
        assert "Traceback" not in server.log
        assert "request.failed" not in server.log


@pytest.mark.parametrize(
    ("frames", "code"),
    {
        "not masked": (frame(TEXT, b"{}", masked=False), 1002),
        "a continuation that is not masked": (
            frame(TEXT, b"{", fin=False) + frame(CONTINUED, b"}", masked=False),
            1002,
        ),
        "a ping that is not masked": (frame(PING, masked=False), 1002),
        "a reserved opcode": (frame(5, b"{}"), 1002),
        "a reserved opcode of control frames": (frame(11), 1002),
        "a compressed frame, which nobody agreed on": (frame(TEXT, zlib.compress(b"{}"), reserved=4), 1002),
        "the second reserved bit": (frame(TEXT, b"{}", reserved=2), 1002),
        "the third reserved bit": (frame(PING, reserved=1), 1002),
        "a continuation of nothing": (frame(CONTINUED, b"{}"), 1002),
        "a long ping": (frame(PING, bytes(126)), 1002),
        "a long pong": (frame(PONG, bytes(126)), 1002),
        "a long close": (frame(CLOSE, b"\x03\xe8" + bytes(124)), 1002),
        "a ping in fragments": (frame(PING, b"a", fin=False) + frame(CONTINUED, b"b"), 1002),
        "a close in fragments": (frame(CLOSE, b"\x03\xe8", fin=False), 1002),
        "a close with half a code": (frame(CLOSE, b"\x03"), 1002),
        "a close with a code that nobody may send": (frame(CLOSE, struct.pack("!H", 1005)), 1002),
        "a close with a code that is none": (frame(CLOSE, struct.pack("!H", 999)), 1002),
        "a close whose reason is not UTF-8": (frame(CLOSE, b"\x03\xe8\xff"), 1007),
        "a good close": (frame(CLOSE, b"\x03\xe8bye"), 1000),
        "a message within another": (frame(TEXT, b"{", fin=False) + frame(TEXT, b"}"), 1002),
        "not UTF-8": (frame(TEXT, b"\xff\xfe"), 1007),
        "not UTF-8 in fragments": (frame(TEXT, b"\xc3", fin=False) + frame(CONTINUED, b"("), 1007),
        "half a letter at the end": (frame(TEXT, b"\xc3"), 1007),
        "binary": (frame(BINARY, b"{}"), 1003),
        "a huge message": (frame(TEXT, bytes((1 << 16) + 1)), 1009),
        "a huge length": (b"\x81\xff" + struct.pack("!Q", 1 << 62) + b"\1\2\3\4", 1009),
        "huge in fragments": (
            frame(TEXT, bytes(1 << 15), fin=False) + 3 * frame(CONTINUED, bytes(1 << 15), fin=False),
            1009,
        ),
        "fragments without end": (frame(TEXT, b"{", fin=False) + 3000 * frame(CONTINUED, b"", fin=False), 1008),
        "a message that does not end": (frame(TEXT, b"{", fin=False), 1008),
        "a frame that does not end": (frame(TEXT, bytes(1000))[:-1], 1008),
        "half of a header": (b"\x81", 1008),
        "a length with its highest bit set": (b"\x81\xff" + struct.pack("!Q", 1 << 63) + b"\1\2\3\4", 1009),
        "a length in more bytes than it needs": (b"\x81\xfe\0\2" + b"\1\2\3\4" + b"zy", 1008),
    }.values(),
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_a_bad_frame_closes_the_connection_with_its_code(strict: Server, frames: bytes, code: int) -> None:
    with raw(strict, strict.key) as line:
        with contextlib.suppress(ConnectionError):
            line.sendall(frames)
        assert closed_with(line) == code


def test_a_letter_may_be_cut_by_fragments_and_a_ping_may_come_between(strict: Server) -> None:
    whole = json.dumps({"type": "né"}, ensure_ascii=False).encode()
    cut = whole.index(b"\xc3") + 1
    with raw(strict, strict.key) as line:
        line.sendall(frame(TEXT, whole[:cut], fin=False) + frame(PING, b"x") + frame(CONTINUED, whole[cut:]))
        data = b""
        while b'"error"' not in data:
            piece = line.recv(1 << 16)
            assert piece, data
            data += piece
        assert b"\x8a\x01x" in data, "the ping was not answered"


def test_compression_is_not_agreed_on(strict: Server) -> None:
    with connected(strict) as line:
        line.sendall(handshake(strict.key, "Sec-WebSocket-Extensions: permessage-deflate"))
        head = line.recv(1 << 16).lower()
        assert b" 101 " in head
        assert b"sec-websocket-extensions" not in head


def test_a_handshake_that_is_none_gets_an_http_answer(strict: Server) -> None:
    whole = handshake(strict.key)
    for bad, statuses in (
        (whole.replace(b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Version: 8"), (400, 426)),
        (whole.replace(b"Sec-WebSocket-Key", b"X-Key"), (400,)),
        (whole.replace(b"GET ", b"POST "), (400,)),
        (whole.replace(b"HTTP/1.1", b"HTTP/1.0"), (405,)),
        (whole.replace(b"/v1/responses", b"/v1/models"), (200,)),
        (handshake(strict.key, "Content-Length: 2"), (405,)),
        (handshake(strict.key, f"X-Long: {'a' * 9000}"), (400,)),
        (handshake(strict.key, *(f"X-{index}: a" for index in range(200))), (400,)),
    ):
        with connected(strict) as line:
            line.sendall(bad)
            assert int(line.recv(1 << 16).split()[1]) in statuses, bad[:60]


def test_what_comes_before_the_handshake_is_answered_waits_for_it(strict: Server) -> None:
    with connected(strict) as line:
        line.sendall(handshake(strict.key) + frame(TEXT, b"{"))
        data = b""
        while b"invalid_json" not in data:
            data += line.recv(1 << 16)
        assert data.startswith(b"HTTP/1.1 101 ")
    with connected(strict) as line:
        line.sendall(handshake("axk_wrong") + 100 * frame(TEXT, b"{"))
        assert b" 401 " in line.recv(1 << 16)


def test_a_client_that_answers_no_ping_is_closed(strict: Server) -> None:
    with raw(strict, strict.key) as line:
        assert closed_with(line) == 1011


def test_a_flood_of_pings_and_small_messages_costs_its_bytes_alone(strict: Server) -> None:
    with raw(strict, strict.key) as line, contextlib.suppress(ConnectionError, TimeoutError):
        line.settimeout(5)
        for _ in range(200):  # it reads nothing: pongs and error events fill the buffers
            line.sendall(200 * frame(PING, b"x") + 50 * frame(TEXT, b"{"))
    with opened(strict, strict.key, "?key=a-word-in-the-query") as other:
        other.send("{")
        assert json.loads(other.recv(timeout=PATIENCE_S))["type"] == "error"


def test_a_client_that_reads_nothing_is_cut_off_and_its_stream_can_be_resumed(strict: Server) -> None:
    with connected(strict) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.sendall(handshake(strict.key))
        for number in range(8):
            ask = {**ASK, "stream_id": str(number), "max_output_tokens": 4000}
            line.sendall(frame(TEXT, json.dumps(ask).encode()))
        wait_until(lambda: strict.metric("axon_sockets") == 0, "it is cut off")


@pytest.mark.parametrize("by", ["query", "event", "cancel", "previous"])
def test_a_foreign_response_is_answered_like_an_unknown_one(server: Server, keys: Keyring, by: str) -> None:
    with opened(server, keys.mine) as line:
        line.send(json.dumps({"type": "response.create", "model": "echo", "input": "secret"}))
        mine = json.loads(line.recv(timeout=PATIENCE_S))["response"]["id"]
    errors = []
    for response_id in (mine, mine[:-1] + ("0" if mine[-1] != "0" else "1")):
        with opened(server, keys.foreign, f"?response_id={response_id}" if by == "query" else "") as line:
            if by == "event":
                line.send(json.dumps({"type": "response.retrieve", "response_id": response_id}))
            elif by == "cancel":
                line.send(json.dumps({"type": "response.cancel", "response_id": response_id}))
            elif by == "previous":
                ask = {"type": "response.create", "model": "echo", "input": "a", "previous_response_id": response_id}
                line.send(json.dumps(ask))
            event = json.loads(line.recv(timeout=PATIENCE_S))
            errors.append((event["type"], event["status"], event["error"]["code"]))
    assert errors[0] == errors[1]
    assert errors[0][0] == "error"
    assert errors[0][1] in (400, 404)


def test_a_key_opens_a_socket_for_what_its_scopes_say(server: Server, keys: Keyring) -> None:
    for key in (keys.scopeless, keys.admin, keys.suspended):
        with pytest.raises(InvalidStatus) as refused:
            opened(server, key)
        assert refused.value.response.status_code == 403
    with opened(server, keys.reader) as line:
        line.send(json.dumps({"type": "response.create", "model": "echo", "input": "a"}))
        event = json.loads(line.recv(timeout=PATIENCE_S))
        assert (event["status"], event["error"]["code"]) == (403, "insufficient_permissions")


def test_a_revoked_key_ends_its_socket(tmp_path: Path) -> None:
    settings = {"engine_kind": "echo", "engine_echo_step_s": 0.01, "lifecycle_drain_s": 1}
    with running(tmp_path / "data", **settings) as server:
        made = server.axon("keys", "create", "--name", "short", "--json")
        key = json.loads(made.stdout)
        with opened(server, key["key"]) as busy, opened(server, key["key"]) as idle:
            busy.send(json.dumps({**ASK, "max_output_tokens": 4000}))
            busy.recv(timeout=PATIENCE_S)
            server.axon("keys", "revoke", key["id"])
            for line in (busy, idle):
                with contextlib.suppress(ConnectionClosed):
                    line.send(json.dumps(ASK))
                with pytest.raises(ConnectionClosed) as closed:
                    read_on(line)
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 1008
