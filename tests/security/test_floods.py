"""Whoever holds connections, sends slowly, sends too much or takes nothing: the others are served, and nothing is left.

No test here looks at a clock: each waits for the thing itself.
"""

import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.journeys.server import Server, running, wait_until
from tests.security.raw import PATIENCE_S, answers, connected, request

NUM = 300
"""Connections that are held, where 200 are taken."""
_MORE_FDS = 8
_MORE_BYTES = 96 << 20
ASK = {"model": "echo", "prompt": "hello", "max_tokens": 1}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with little patience and room for 200 connections."""
    settings = {
        "engine_kind": "echo",
        "gateway_max_connections": 200,
        "gateway_header_timeout_s": 2,
        "gateway_body_timeout_s": 1,
        "gateway_keep_alive_s": 1,
        "gateway_write_timeout_s": 1,
        "admission_requests_per_minute": 0,
    }
    with running(tmp_path_factory.mktemp("small") / "data", **settings) as server:
        ask(server)
        yield server


def ask(server: Server) -> int:
    """A request like any other, over a connection of its own."""
    headers = {"Authorization": f"Bearer {server.key}"}
    return httpx.post(f"{server.url}/v1/completions", json=ASK, headers=headers, timeout=PATIENCE_S).status_code


def num_fds(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def num_bytes(server: Server) -> int:
    """The most memory it has had."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


@contextlib.contextmanager
def healthy(server: Server) -> Iterator[Callable[[], int]]:
    """A client that asks again and again meanwhile; gives how often it was answered. It must be, every time."""
    answered: list[int] = []
    failures: list[object] = []
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(0.02):
            try:
                status = ask(server)
                (answered if status == 200 else failures).append(status)
            except httpx.HTTPError as error:
                failures.append(error)

    asking = threading.Thread(target=go_on)
    asking.start()
    try:
        yield lambda: len(answered)
    finally:
        over.set()
        asking.join(PATIENCE_S)
    assert not failures


@contextlib.contextmanager
def held(server: Server, num: int, *pieces: bytes) -> Iterator[list[socket.socket]]:
    """So many connections that have said this, each piece after the answer to the one before, and say no more."""
    with contextlib.ExitStack() as stack:
        lines = []
        for _ in range(num):
            line = stack.enter_context(connected(server))
            with contextlib.suppress(ConnectionError):
                for place, piece in enumerate(pieces):
                    if place:
                        select.select([line], [], [], PATIENCE_S)
                    line.sendall(piece)
            lines.append(line)
        yield lines


def is_closed(line: socket.socket) -> bool:
    """Whether the other side has ended it; what it said before is read and thrown away."""
    while select.select([line], [], [], 0)[0]:
        try:
            if not line.recv(1 << 16):
                return True
        except ConnectionError:
            return True
    return False


def outlasts(server: Server, num: int, *pieces: bytes) -> None:
    """Holds connections; the healthy go on, every one held is closed, and nothing of it stays."""
    fds = num_fds(server)
    with healthy(server) as num_answered, held(server, num, *pieces) as lines:
        since = num_answered()
        wait_until(lambda: num_answered() >= since + 5, "the healthy are served beside it", PATIENCE_S)
        wait_until(lambda: all(map(is_closed, lines)), "all of them are closed", PATIENCE_S)
    wait_until(lambda: num_fds(server) <= fds + _MORE_FDS, "their descriptors are back", PATIENCE_S)
    assert ask(server) == 200


NO_KEY = b"POST /v1/completions HTTP/1.1\r\nHost: axon\r\nContent-Length: 100\r\n\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        (),
        (b"\r\n",),
        (b"GET /livez HTTP/1.1\r\nHost: axon\r\nX-Slow: ",),
        (NO_KEY,),
        (NO_KEY, b"{"),
        (NO_KEY.replace(b"Content-Length: 100", b"Transfer-Encoding: chunked"), b"5\r\nhe"),
        (request("/livez").replace(b"Connection: close\r\n", b""), b"\r\n"),
        (request("/livez").replace(b"Connection: close", b"Content-Length: 5"), b"h"),
    ],
    ids=[
        "that say nothing",
        "that say an empty line",
        "that never end their headers",
        "that have no key and never send their body",
        "that have no key and never end their body",
        "that have no key and never end a chunk",
        "that say an empty line after an answer",
        "that never end a body that nobody reads",
    ],
)
def test_connections_are_closed_and_cost_nobody_anything(small: Server, pieces: tuple[bytes, ...]) -> None:
    outlasts(small, NUM, *pieces)


def test_a_body_that_never_ends_is_refused_and_costs_nobody_anything(small: Server) -> None:
    head = NO_KEY.replace(b"Host: axon", f"Host: axon\r\nAuthorization: Bearer {small.key}".encode())
    outlasts(small, 150, head + b"{")
    with connected(small) as line:
        line.sendall(head + b"{")
        assert next(answers(line, most=1)).status == 408


def test_a_client_that_takes_nothing_of_its_answers_is_cut_off(small: Server) -> None:
    key = f"Authorization: Bearer {small.key}"
    asks = request("/openapi.json", key).replace(b"Connection: close\r\n", b"") * 400
    with healthy(small) as num_answered, held(small, 5, asks) as lines:
        since = num_answered()
        wait_until(lambda: num_answered() >= since + 5, "the healthy are served beside it", PATIENCE_S)
        wait_until(lambda: all(map(is_cut, lines)), "they are cut off", PATIENCE_S)
    assert ask(small) == 200


def is_cut(line: socket.socket) -> bool:
    """Whether the other side has broken it off; looked at without taking anything."""
    look = select.poll()
    look.register(line, select.POLLERR | select.POLLHUP)
    return bool(look.poll(0))


def test_a_client_that_takes_little_at_a_time_gets_everything(small: Server) -> None:
    key = f"Authorization: Bearer {small.key}"
    with connected(small) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.sendall(request("/openapi.json", key).replace(b"Connection: close\r\n", b"") * 2)
        assert [answer.status for answer in answers(line, most=2)] == [200] * 2


def test_a_body_that_is_said_to_be_too_large_is_refused_before_it_is_sent(small: Server) -> None:
    head = NO_KEY.replace(b"Host: axon", f"Host: axon\r\nAuthorization: Bearer {small.key}".encode())
    with connected(small) as line:
        line.sendall(head.replace(b"Content-Length: 100", b"Content-Length: 5000000"))
        assert next(answers(line, most=1)).status == 413


@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "without a key"])
@pytest.mark.parametrize("what", ["body", "chunk", "trailer", "headers"])
def test_what_never_ends_takes_no_memory(small: Server, what: str, has_key: bool) -> None:
    most = num_bytes(small) + _MORE_BYTES
    key = f"Authorization: Bearer {small.key}\r\n" if has_key else ""
    head = f"POST /v1/completions HTTP/1.1\r\nHost: axon\r\n{key}"
    if what != "headers":
        head += "Content-Length: 400000000\r\n\r\n" if what == "body" else "Transfer-Encoding: chunked\r\n\r\n"
    piece = {"body": b" " * 65536, "chunk": b"10000\r\n%b\r\n" % (b" " * 65536)}.get(what, b"x" * 65536)
    with connected(small) as line, contextlib.suppress(ConnectionError):
        line.sendall(head.encode() + {"trailer": b"0\r\nX: ", "headers": b"X: "}.get(what, b""))
        for _ in range(6000):
            line.sendall(piece)
    assert num_bytes(small) < most
    assert ask(small) == 200


PILED = b"GET /v1/models HTTP/1.1\r\nHost: axon\r\n\r\n"


def pushed(line: socket.socket, data: memoryview) -> memoryview:
    """Sends what the other side takes now; the rest of it."""
    line.setblocking(False)
    try:
        return data[line.send(data) :]
    except BlockingIOError:
        return data
    except ConnectionError:
        return data[len(data) :]


def test_requests_that_pile_up_unread_take_no_memory_and_hold_up_no_probe(small: Server) -> None:
    most = num_bytes(small) + _MORE_BYTES
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(connected(small)) for _ in range(20)]
        rests = [memoryview(PILED * 50_000) for _ in lines]
        for _ in range(50):
            rests = [pushed(line, rest) for line, rest in zip(lines, rests, strict=True)]
            assert httpx.get(f"{small.url}/livez", timeout=PATIENCE_S).status_code == 200
            assert num_bytes(small) < most
    assert ask(small) == 200


@pytest.mark.parametrize("num", [3, 200])
def test_a_client_that_reads_may_send_requests_ahead(small: Server, num: int) -> None:
    with connected(small) as line:
        line.sendall(b"".join(b"GET /v1/models/%d HTTP/1.1\r\nHost: axon\r\n\r\n" % each for each in range(num)))
        assert [answer.status for answer in answers(line, most=num)] == [401] * num


@pytest.mark.parametrize("framing", ["a length", "chunks"])
@pytest.mark.parametrize("num_bytes_each", [1, 7, 1 << 20], ids=["by the byte", "in small pieces", "at once"])
def test_bodies_sent_ahead_are_each_their_own_requests(small: Server, framing: str, num_bytes_each: int) -> None:
    """However the connection cuts them, and with blank lines in the body where a request's headers could end."""
    key = f"Authorization: Bearer {small.key}\r\n"
    sent = b""
    for number in range(4):
        body = b'\r\n\r\n{"model": "echo", "prompt": "number %d", \r\n\r\n"max_tokens": 2, "echo": true}' % number
        length = f"Content-Length: {len(body)}" if framing == "a length" else "Transfer-Encoding: chunked"
        head = f"POST /v1/completions HTTP/1.1\r\nHost: axon\r\n{key}{length}\r\n\r\n".encode()
        sent += head + (body if framing == "a length" else b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
    with connected(small) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(sent), num_bytes_each):
            line.sendall(sent[at : at + num_bytes_each])
        found = list(answers(line, most=4))
    assert [answer.status for answer in found] == [200] * 4
    assert all(b"number %d" % number in answer.body for number, answer in enumerate(found))
