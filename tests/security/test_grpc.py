"""gRPC with clients that mean ill: huge messages, bad bytes, compressed ones, guesses, and readers that do not read."""

import contextlib
import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from axon.gateway.grpc.health import MAX_WATCHES
from axon.gateway.grpc.methods import AXON, HEALTH, make_methods
from axon.v1 import axon_pb2 as pb
from tests import long
from tests.journeys.grpc_line import (
    PATIENCE_S,
    Line,
    address_of,
    bearer,
    chat,
    error_of,
    opened,
    prompt,
    refused,
    text_of,
)
from tests.journeys.server import Server, running, wait_until
from tests.security.test_socket_crowd import memory_kb

GENERATE = f"/{AXON}/Generate"
_STREAM_KB, _REST_KB = 400, 40_000
"""What an unread stream may add to the server's memory, and what anything may."""
_REFUSALS = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with little patience, shared by the tests that leave it as it was."""
    with small_server(tmp_path_factory.mktemp("grpc")) as server:
        yield server


@contextlib.contextmanager
def small_server(folder: Path) -> Iterator[Server]:
    settings = {
        "engine_kind": "echo",
        "engine_max_model_len": 100_000,
        "gateway_body_timeout_s": 2,
        "gateway_write_timeout_s": 2,
        "gateway_failures_per_minute": 20,
        "sessions_reader_grace_s": 2,
        "admission_requests_per_minute": 0,
        "grpc_enabled": "true",
        "grpc_port": 0,
    }
    with running(folder / "data", **settings) as server:
        yield server


@pytest.fixture
def line(small: Server) -> Iterator[Line]:
    with opened(address_of(small), small.key) as line:
        yield line


def still_serves(server: Server) -> None:
    with opened(address_of(server), server.key) as line:
        assert text_of(line.generate(chat("hi", temperature=0))) == "user: hi\nassistant:"


def raw(line: Line, server: Server, *messages: bytes) -> Any:
    """A call with these bytes as its messages."""
    call: Any = line.channel.stream_stream(GENERATE)
    return call(iter(messages), metadata=bearer(server.key), timeout=PATIENCE_S)


def test_bytes_that_are_no_message_are_refused(line: Line, small: Server) -> None:
    for data in (b"\xff", b"\x0a\x05abc", b"\x0a\xff\xff\xff\xff\x7f", b"\x0b", b"\x0a\x04\x0a\x02\xff\xfe"):
        code, error = refused(raw(line, small, data))
        assert (code, error.code) == (grpc.StatusCode.INVALID_ARGUMENT, "invalid_protobuf"), data
    code, _ = refused(raw(line, small))
    assert code is grpc.StatusCode.INVALID_ARGUMENT, "a call without a message"
    still_serves(small)


def test_strange_messages_to_every_method_are_answered_and_never_by_a_crash(line: Line, small: Server) -> None:
    chance = random.Random(7)
    good = [chat("hi", max_tokens=3), prompt("hi", choices=2, max_tokens=3, logprobs=1, stop=["x"], seed=1)]
    good.append(pb.GenerateRequest(resume=pb.Resume(id="chatcmpl-1", after=1 << 62)))
    codes: dict[str, set[grpc.StatusCode]] = {}
    for _ in range(round(long.share(3000))):
        data = bytearray(chance.choice(good).SerializeToString())
        for _ in range(chance.randrange(4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path = chance.choice([path for path in make_methods() if not path.endswith("/Watch")])
        call: Any = line.channel.stream_stream(path)
        answer = call(iter([bytes(data)]), metadata=bearer(small.key), timeout=PATIENCE_S)
        with contextlib.suppress(grpc.RpcError):
            list(answer)
        codes.setdefault(path, set()).add(answer.code())
    bad = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED}
    assert {path: found & bad for path, found in codes.items() if found & bad} == {}
    assert "request.failed" not in small.log
    still_serves(small)


def test_a_huge_message_is_refused_before_it_is_read(line: Line, small: Server) -> None:
    before = memory_kb(small)
    with pytest.raises(grpc.RpcError) as failed:
        list(line.generate(prompt("x" * (40 << 20))))
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert memory_kb(small) - before < _REST_KB
    still_serves(small)


def test_few_bytes_do_not_become_many_objects(line: Line, small: Server) -> None:
    asked = pb.GenerateRequest(turn=pb.Turn(model="echo", chat=pb.Chat(messages=[pb.Message()] * 1_900_000)))
    data = asked.SerializeToString()
    assert len(data) < 4 << 20
    before = memory_kb(small)
    code, error = refused(raw(line, small, data))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "too many fields" in error.message
    assert memory_kb(small) - before < _REST_KB


def test_a_compressed_message_is_refused(small: Server) -> None:
    with grpc.insecure_channel(address_of(small), compression=grpc.Compression.Gzip) as channel:
        call: Any = channel.unary_stream(GENERATE)
        with pytest.raises(grpc.RpcError) as failed:
            list(call(chat("a" * 3_000_000).SerializeToString(), metadata=bearer(small.key), timeout=PATIENCE_S))
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED
    still_serves(small)


def test_long_metadata_are_refused(line: Line, small: Server) -> None:
    with pytest.raises(grpc.RpcError) as failed:
        list(line.generate(chat(), ("x-axon-session", "a" * (200 << 10))))
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    code, error = refused(line.generate(chat(), ("idempotency-key", "a" * 300)))
    assert (code, error.param) == (grpc.StatusCode.INVALID_ARGUMENT, "Idempotency-Key")
    still_serves(small)


def test_a_call_that_never_sends_its_message_is_ended(line: Line, small: Server) -> None:
    never = threading.Event()

    def nothing() -> Iterator[bytes]:
        never.wait(PATIENCE_S)
        yield from ()

    call: Any = line.channel.stream_stream(GENERATE)
    try:
        code, error = refused(call(nothing(), metadata=bearer(small.key)))
        assert (code, error.code) == (grpc.StatusCode.DEADLINE_EXCEEDED, "request_timeout")
    finally:
        never.set()


def test_what_is_no_http2_is_closed(small: Server) -> None:
    host, _, port = address_of(small).rpartition(":")
    for data in (
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x00" * 4096,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 999,
    ):
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as raw_socket:
            raw_socket.sendall(data)
            with contextlib.suppress(ConnectionError):
                while raw_socket.recv(4096):
                    pass
    still_serves(small)


def test_guesses_are_slowed_down_as_over_http(tmp_path: Path) -> None:
    with small_server(tmp_path) as server:
        still_serves(server)  # a key that has not been used before the guesses has to wait, as all that is unknown
        _guess(server)
        still_serves(server)


def _guess(small: Server) -> None:
    from axon.domain.tenants.key import new_key_text

    codes = []
    with grpc.insecure_channel(address_of(small)) as channel:
        call: Any = channel.unary_stream(GENERATE)
        for _ in range(25):
            with pytest.raises(grpc.RpcError) as failed:
                list(call(b"", metadata=bearer(new_key_text()[1]), timeout=PATIENCE_S))
            codes.append(error_of(failed.value).code)
    assert codes[:20] == ["invalid_api_key"] * 20
    assert codes[-1] == "too_many_failures"
    with small.client() as http:
        http.headers["Authorization"] = f"Bearer {new_key_text()[1]}"
        assert http.get("/v1/models").json()["error"]["code"] == "too_many_failures", "both doors share one limit"


def test_watches_without_a_key_have_a_bound(small: Server) -> None:
    with contextlib.ExitStack() as stack:
        channels = [
            stack.enter_context(
                grpc.insecure_channel(address_of(small), options=[("grpc.use_local_subchannel_pool", 1)])
            )
            for _ in range(2)
        ]
        watches: list[Any] = []
        for number in range(MAX_WATCHES):
            call: Any = channels[number % 2].unary_stream(f"/{HEALTH}/Watch")
            watches.append(call(b"", timeout=PATIENCE_S))
            next(watches[-1])
        one_more: Any = channels[0].unary_stream(f"/{HEALTH}/Watch")
        with pytest.raises(grpc.RpcError) as failed:
            list(one_more(b"", timeout=PATIENCE_S))
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        still_serves(small)
        for each in watches:
            each.cancel()


def test_unread_streams_cost_little_and_are_given_up(small: Server) -> None:
    num = round(long.share(500))
    still_serves(small)
    before = memory_kb(small)
    with contextlib.ExitStack() as stack:
        unread = []
        for _ in range(num):
            channel = stack.enter_context(
                grpc.insecure_channel(
                    address_of(small),
                    options=[
                        ("grpc.use_local_subchannel_pool", 1),
                        ("grpc.http2.lookahead_bytes", 4096),
                        ("grpc.http2.bdp_probe", 0),
                    ],
                )
            )
            call: Any = channel.unary_stream(GENERATE)
            asked = prompt("on and on", max_tokens=90_000, ignore_eos=True)
            unread.append(call(asked.SerializeToString(), metadata=bearer(small.key)))
        still_serves(small)

        def num_refused() -> int:
            """Calls that busy cores kept from being accepted in time: their turns never began."""
            return sum(call.done() and call.code() in _REFUSALS for call in unread)

        def are_given_up() -> bool:
            """All are counted; or most are and nothing runs: a turn that control ends, not its worker, is not."""
            num_left = num - num_refused() - small.metric("axon_cancelled_total")
            runs = small.metric("axon_requests_running") + small.metric("axon_requests_waiting")
            return num_left <= 0 or (num_left < num / 5 and not runs)

        wait_until(are_given_up, "nobody reads them", PATIENCE_S * 4)
        assert num_refused() < num / 5
        assert memory_kb(small) - before < num * _STREAM_KB + _REST_KB
        still_serves(small)


def test_grpc_costs_nothing_while_it_is_off(tmp_path: Path) -> None:
    with running(tmp_path / "data", True, engine_kind="echo") as server:
        maps = Path(f"/proc/{server.pid}/maps").read_text()
        assert "cygrpc" not in maps
        assert "gRPC" not in server.screen
