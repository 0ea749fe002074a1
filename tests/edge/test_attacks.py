"""What nobody should send to an edge: a gateway sees none of it, or one plain request; and others are still served."""

import contextlib
import socket
import ssl
import threading

import pytest

from tests.edge.conftest import AnyEdge, MakeEdge
from tests.edge.line import KEY, client, connected, talk
from tests.edge.upstream import Seen, Upstream, ok

BEHIND = b"GET /v1/smuggled HTTP/1.1\r\nHost: axon\r\n\r\n"
"""A request that is to be taken for the rest of another, or the other way round."""


def ask(*headers: str, body: bytes = b"", end: str = "\r\n", first: str = "POST /v1/completions HTTP/1.1") -> bytes:
    lines = [first, "Host: axon", KEY.strip(), "Connection: close", *headers, "", ""]
    return end.join(lines).encode("latin-1") + body


CHUNK = b"5\r\nhello\r\n0\r\n\r\n"
SHAPES = {
    "a length and chunks": ask("Content-Length: 4", "Transfer-Encoding: chunked", body=b"0\r\n\r\n" + BEHIND),
    "chunks and a length": ask(
        "Transfer-Encoding: chunked", f"Content-Length: {len(CHUNK + BEHIND)}", body=CHUNK + BEHIND
    ),
    "two lengths": ask("Content-Length: 0", f"Content-Length: {len(BEHIND)}", body=BEHIND),
    "two lengths in one": ask(f"Content-Length: 0, {len(BEHIND)}", body=BEHIND),
    "a signed length": ask(f"Content-Length: +{len(BEHIND)}", body=BEHIND),
    "a length in hexadecimal": ask("Content-Length: 0x10", body=BEHIND),
    "chunks by another name": ask("Transfer-Encoding: xchunked", "Content-Length: 0", body=CHUNK + BEHIND),
    "chunks twice": ask("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=CHUNK + BEHIND),
    "chunks and no chunks": ask("Transfer-Encoding: chunked, identity", body=CHUNK + BEHIND),
    "a space before the colon": ask("Transfer-Encoding : chunked", "Content-Length: 0", body=CHUNK + BEHIND),
    "a folded header": ask("X-One: a", " Transfer-Encoding: chunked", "Content-Length: 0", body=CHUNK + BEHIND),
    "a folded coding": ask("Transfer-Encoding:", " chunked", "Content-Length: 0", body=CHUNK + BEHIND),
    "bare line feeds": ask("Content-Length: 0", end="\n", body=BEHIND),
    "a line feed in a header": ask("X-One: a\nTransfer-Encoding: chunked", "Content-Length: 0", body=CHUNK + BEHIND),
    "a carriage return in a header": ask("X-One: a\rTransfer-Encoding: chunked", "Content-Length: 0", body=BEHIND),
    "a zero byte in a header": ask("X-One: a\0b", "Content-Length: 0", body=BEHIND),
    "a chunk that ends in a bare line feed": ask("Transfer-Encoding: chunked", body=b"5\nhello\n0\n\n" + BEHIND),
    "a chunk size with a sign": ask("Transfer-Encoding: chunked", body=b"+5\r\nhello\r\n0\r\n\r\n" + BEHIND),
    "a chunk size that overflows": ask(
        "Transfer-Encoding: chunked", body=b"1" + b"0" * 16 + b"5\r\nhello\r\n0\r\n\r\n" + BEHIND
    ),
    "a request line with two paths": ask("Content-Length: 0", first="POST /v1/completions /v1/smuggled HTTP/1.1"),
    "chunks over HTTP/1.0": ask(
        "Transfer-Encoding: chunked", first="POST /v1/completions HTTP/1.0", body=CHUNK + BEHIND
    ),
    "two hosts": ask("Host: another", "Content-Length: 0", body=BEHIND),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_is_taken_for_two_requests(shared_edge: AnyEdge, upstream: Upstream, shape: str) -> None:
    replies = talk(shared_edge.port, SHAPES[shape])
    assert not upstream.problems
    assert not [each for each in upstream.asked if "smuggled" in each.path], upstream.asked
    assert len(upstream.asked) <= 1
    assert len(replies) <= 1, "what stands behind the request was answered"
    assert all(b"smuggled" not in each.body or each.method == "POST" for each in upstream.asked)


@pytest.mark.parametrize("extension", [b";a", b";a=b", b';a="b;c"', b" ;a=b"])
def test_a_chunks_extension_changes_nothing(shared_edge: AnyEdge, upstream: Upstream, extension: bytes) -> None:
    body = b"5" + extension + b"\r\nhello\r\n0" + extension + b"\r\n\r\n"
    [reply] = talk(shared_edge.port, ask("Transfer-Encoding: chunked", body=body))
    assert not upstream.problems
    if reply.status == 200:
        [seen] = upstream.asked
        assert seen.body == b"hello"
    else:
        assert reply.status == 400
        assert not upstream.asked


def test_a_slow_head_is_cut_off(hasty_edge: AnyEdge, upstream: Upstream) -> None:
    with contextlib.ExitStack() as stack:
        head = b"POST /v1/completions HTTP/1.1\r\nHost: axon\r\nX-One: "
        for line in [_begun(stack, hasty_edge, head) for _ in range(50)]:
            assert _ends(line) in (b"", b"HTTP/1.1 408")
    assert not upstream.asked
    assert not upstream.problems


def test_others_are_served_beside_slow_heads(shared_edge: AnyEdge, upstream: Upstream) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            _begun(stack, shared_edge, b"POST /v1/completions HTTP/1.1\r\nHost: axon\r\nX-One: ")
        with client(shared_edge.url) as http:
            assert http.post("/v1/completions", json={}).status_code == 200
    assert [each.path for each in upstream.asked] == ["/v1/completions"]
    assert not upstream.problems


def test_a_slow_body_is_cut_off_and_no_gateway_hears_of_it(hasty_edge: AnyEdge, upstream: Upstream) -> None:
    with contextlib.ExitStack() as stack:
        for line in [_begun(stack, hasty_edge, ask("Content-Length: 100", body=b"{")) for _ in range(50)]:
            assert _ends(line) in (b"", b"HTTP/1.1 408")
    assert not upstream.asked
    assert not upstream.problems


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([f"X-One: {'a' * 100_000}"], id="one"),
        pytest.param([f"X-{number}: {'a' * 1000}" for number in range(200)], id="many"),
    ],
)
def test_huge_headers_are_refused(shared_edge: AnyEdge, upstream: Upstream, headers: list[str]) -> None:
    [reply] = talk(shared_edge.port, ask(*headers, "Content-Length: 0"))
    assert reply.status in (400, 431)
    assert not upstream.asked


def test_a_huge_body_is_refused_without_a_look_at_it(shared_edge: AnyEdge, upstream: Upstream) -> None:
    with client(shared_edge.url) as http:
        reply = http.post("/v1/completions", content=b"a" * (17 << 20))
    assert reply.status_code == 413
    assert not upstream.asked


def test_a_flood_of_connections_that_say_nothing_shuts_nobody_out(shared_edge: AnyEdge, upstream: Upstream) -> None:
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connected(shared_edge.port)) for _ in range(300)]
        with client(shared_edge.url) as http:
            for _ in range(5):
                assert http.post("/v1/completions", json={}).status_code == 200
        assert len(idle) == 300
    assert len(upstream.asked) == 5


def test_an_address_has_its_cap(make_edge: MakeEdge, kind: str) -> None:
    """nginx counts requests that are open, Envoy requests in a second: both say so in the API's own shape."""
    hold, came = threading.Event(), threading.Semaphore(0)

    def held(seen: Seen, line: socket.socket) -> None:
        came.release()
        assert hold.wait(60)
        ok(seen, line)

    with Upstream(held) as upstream, contextlib.ExitStack() as stack:
        stack.callback(hold.set)
        edge = make_edge(upstream.port, requests_per_address=1)
        line = stack.enter_context(connected(edge.port))
        line.sendall(ask("Content-Length: 2", body=b"{}"))
        assert came.acquire(timeout=60)
        with client(edge.url) as http:
            if kind == "nginx":
                refused = http.post("/v1/completions", json={})
            else:
                hold.set()
                replies = [http.post("/v1/completions", json={}) for _ in range(30)]
                refused = next(each for each in replies if each.status_code != 200)
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "too_many_requests_open"
        assert refused.headers["retry-after"] == "1"


def _begun(stack: contextlib.ExitStack, edge: AnyEdge, data: bytes) -> ssl.SSLSocket:
    """A connection that has begun to say something, unless the edge has lost patience already."""
    line = stack.enter_context(connected(edge.port))
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        line.sendall(data)
    return line


def _ends(line: ssl.SSLSocket) -> bytes:
    """The status line of what comes before the edge closes the connection; nothing if that is all it does."""
    data = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while more := line.recv(65536):
            data += more
    return data[:12]
