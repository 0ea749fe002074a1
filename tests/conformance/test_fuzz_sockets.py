"""Events and frames over a WebSocket that are almost right: an answer or a close, and the server goes on."""

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.sync.connection import Connection

from tests.conformance import near_valid, near_valid_small
from tests.conformance.test_fuzz import EXAMPLES, QUIET
from tests.journeys.server import Server, running
from tests.security.raw import PATIENCE_S
from tests.security.test_socket import frame, opened, raw

MARK = {"type": "response.cancel", "response_id": "resp_none", "stream_id": "the end"}


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[Server]:
    """A server whose model's context is short, and which waits for nobody long."""
    limits = {
        "engine_max_model_len": 128,
        "admission_requests_per_minute": 0,
        "gateway_body_timeout_s": 0.3,
        "gateway_max_body_bytes": 1 << 16,
        "gateway_max_tenant_sockets": 1000,
    }
    with running(tmp_path / "data", engine_kind="echo", **limits) as server:
        yield server
        assert "Traceback" not in server.log
        assert "request.failed" not in server.log


def answered(line: Connection) -> list[str]:
    """Types of the events that came before the answer to ``MARK``."""
    line.send(json.dumps(MARK))
    types = []
    while True:
        event = json.loads(line.recv(timeout=PATIENCE_S))
        types.append(event["type"])
        if event.get("stream_id") == MARK["stream_id"]:
            assert event["type"] == "error"
            return types


@pytest.mark.long("fuzz near valid")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["any", "create"])
def test_every_event_that_is_almost_right_is_answered(fuzzed: Server, kind: str) -> None:
    created = near_valid.OPERATIONS["/v1/responses"].map(lambda body: {"type": "response.create", **body})
    valid = near_valid_small.EVENTS if kind == "any" else created
    found = Counter[str]()

    @settings(max_examples=2 * EXAMPLES, deadline=None, database=None, suppress_health_check=QUIET)
    @given(near_valid.bodies(valid))
    def send(event: object) -> None:
        line.send(json.dumps(event))
        found.update(answered(line))

    with opened(fuzzed, fuzzed.key) as line:
        send()
        line.send(json.dumps({"type": "response.create", "model": "echo", "input": "hi", "max_output_tokens": 2}))
        assert answered(line)
    print(dict(found))
    assert found["response.created"], "nothing was near enough"


_FRAMES = st.builds(
    lambda opcode, data, fin, masked, bits: _with_bits(frame(opcode, data, fin=fin, masked=masked), bits),
    st.sampled_from([0, 1, 1, 2, 3, 7, 8, 9, 10, 15]),
    st.sampled_from([b"", b"{}", b"{", b'{"type":"response.cancel"}', b"\xff", b"\x03\xe8", b"\0\0", b"x" * 126]),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
    st.sampled_from([0, 0, 0, 0x40, 0x20, 0x10, 0x70]),
)


def _with_bits(data: bytes, bits: int) -> bytes:
    """A frame with some of the reserved bits set."""
    return bytes([data[0] | bits]) + data[1:]


@pytest.mark.long("fuzz near valid")
@pytest.mark.timeout(7200)
def test_frames_in_any_order_end_in_a_close_or_an_answer(fuzzed: Server) -> None:
    @settings(max_examples=5 * EXAMPLES, deadline=None, database=None, suppress_health_check=QUIET)
    @given(st.lists(_FRAMES, min_size=1, max_size=5), st.integers(0, 3))
    def send(frames: list[bytes], cut: int) -> None:
        data = b"".join(frames)
        with raw(fuzzed, fuzzed.key) as line, contextlib.suppress(ConnectionError):
            line.sendall(data[: len(data) - cut] + frame(8, b"\x03\xe8"))
            while line.recv(1 << 16):  # until it closes; the socket has a deadline
                pass

    send()
    with opened(fuzzed, fuzzed.key) as line:
        assert answered(line) == ["error"]
