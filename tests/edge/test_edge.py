"""What an edge does for a gateway: TLS, HTTP/2, keys before bodies, streams as they come, and no request twice."""

import contextlib
import json
import shutil
import socket
import ssl
import subprocess
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.edge.conftest import AnyEdge, MakeEdge
from tests.edge.line import client, connected
from tests.edge.upstream import Seen, Upstream, closes
from tests.services.certificates import Authority, shared_authority
from tests.services.process import free_port, listening, wait_for

AWAY = {"message": "No gateway answered; try again soon.", "type": "server_error", "param": None}


class Talking:
    """A gateway that streams: it says a word only when its listener has heard the one before."""

    WORDS = (b"one", b"two", b"three")

    def __init__(self) -> None:
        self.heard = threading.Semaphore(0)

    def __call__(self, seen: Seen, line: socket.socket) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for word in self.WORDS:
            frame = b"data: " + word + b"\n\n"
            line.sendall(f"{len(frame):x}\r\n".encode() + frame + b"\r\n")
            if not self.heard.acquire(timeout=60):
                return
        line.sendall(b"0\r\n\r\n")

    def listen(self, reply: httpx.Response) -> Iterator[str]:
        """The words, each of which lets the next one be said."""
        for each in reply.iter_lines():
            if each:
                yield each
                self.heard.release()


def test_a_name_and_a_ca_are_verified(shared_edge: AnyEdge, upstream: Upstream, tmp_path: Path) -> None:
    with client(shared_edge.url) as http:
        assert http.get("/livez").status_code == 200
        with pytest.raises(httpx.ConnectError, match=r"certificate is not valid for '127\.0\.0\.1'"):
            http.get(shared_edge.url.replace("localhost", "127.0.0.1"))
    stranger = ssl.create_default_context(cafile=str(Authority(tmp_path).file))
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(shared_edge.url, verify=stranger)
    assert len(upstream.asked) == 1


def test_what_is_not_tls_of_today_is_refused(shared_edge: AnyEdge, upstream: Upstream) -> None:
    old = ssl.create_default_context(cafile=str(shared_authority().file))
    old.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(httpx.ConnectError):
        httpx.get(shared_edge.url, verify=old)
    with contextlib.suppress(httpx.TransportError):
        assert httpx.get(shared_edge.url.replace("https", "http")).status_code == 400
    assert not upstream.asked


def test_it_speaks_http_2(shared_edge: AnyEdge, upstream: Upstream) -> None:
    with connected(shared_edge.port, protocols=("h2", "http/1.1")) as line:
        assert line.selected_alpn_protocol() == "h2"
    if (curl := shutil.which("curl")) is None:
        pytest.skip("not installed: curl")
    command = [curl, "-sS", "--http2", "--cacert", str(shared_authority().file), "-w", " %{http_version} %{http_code}"]
    told = [*command, "-H", "Authorization: Bearer good", "-d", "{}", f"{shared_edge.url}/v1/completions"]
    assert subprocess.run(told, capture_output=True, text=True, timeout=60).stdout == "{} 2 200"
    [seen] = upstream.asked
    assert seen.body == b"{}"


def test_a_gateway_learns_the_clients_address_and_not_what_the_client_says(
    shared_edge: AnyEdge, upstream: Upstream
) -> None:
    with client(shared_edge.url) as http:
        http.post("/v1/completions", json={}, headers={"X-Forwarded-For": "203.0.113.9"})
    [seen] = upstream.asked
    [forwarded] = seen.values("x-forwarded-for")
    said, *added = forwarded.replace(" ", "").split(",")
    assert said == "203.0.113.9"
    assert len(added) == 1  # from this machine itself: its loopback address, or, by Envoy, another of its own
    assert seen.values("x-forwarded-proto") == ["https"]


def test_without_a_good_key_no_body_reaches_a_gateway(shared_edge: AnyEdge, upstream: Upstream) -> None:
    for key in ("bad", ""):
        with client(shared_edge.url, key) as http:
            http.post("/v1/completions", content=b"secret" * 100)
    assert not [each for each in upstream.seen if each.body]
    upstream.forget()
    with client(shared_edge.url, "bad") as http:
        http.options("/v1/completions")  # a browser asks first, and without a key
        http.get("/livez")
    assert [each.path for each in upstream.seen] == ["/v1/completions", "/livez"]


def test_frames_of_a_stream_come_one_by_one(make_edge: MakeEdge) -> None:
    talking = Talking()
    with (
        Upstream(talking) as upstream,
        client(make_edge(upstream.port).url) as http,
        http.stream("POST", "/v1/completions", json={}) as reply,
    ):
        assert list(talking.listen(reply)) == ["data: one", "data: two", "data: three"]


def test_a_stream_outlasts_a_drain_and_nobody_new_is_let_in(make_edge: MakeEdge) -> None:
    talking = Talking()
    with Upstream(talking) as upstream:
        edge = make_edge(upstream.port)
        with client(edge.url) as http, http.stream("POST", "/v1/completions", json={}) as reply:
            words = talking.listen(reply)
            assert next(words) == "data: one"
            edge.drain()
            wait_for(lambda: not listening(edge.port), "nobody listens any more")
            assert list(words) == ["data: two", "data: three"]


def test_a_gateway_that_takes_no_connection_is_passed_over(make_edge: MakeEdge) -> None:
    with Upstream() as upstream, client(make_edge(free_port(), upstream.port, free_port()).url) as http:
        for _ in range(12):
            assert http.post("/v1/completions", json={}).status_code == 200
        assert len(upstream.asked) == 12


def test_a_post_that_a_gateway_has_read_is_not_sent_again(make_edge: MakeEdge) -> None:
    with Upstream(closes) as first, Upstream(closes) as second:
        with client(make_edge(first.port, second.port).url) as http:
            reply = http.post("/v1/completions", json={})
        assert reply.status_code == 503
        assert reply.json() == {"error": {**AWAY, "code": "gateway_unavailable"}}
        assert (reply.headers["retry-after"], reply.headers["x-should-retry"]) == ("1", "true")
        assert len(first.asked + second.asked) == 1


def test_a_get_that_a_gateway_died_over_is_answered_by_another(make_edge: MakeEdge) -> None:
    with Upstream(closes) as first, Upstream() as second, client(make_edge(first.port, second.port).url) as http:
        for _ in range(6):
            assert http.get("/v1/models").status_code == 200
        assert first.asked
        assert len(second.asked) == 6


def test_a_stream_that_breaks_off_ends_so_and_is_not_begun_again(make_edge: MakeEdge) -> None:
    def breaks(seen: Seen, line: socket.socket) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
        closes(seen, line)

    with Upstream(breaks) as first, Upstream(breaks) as second:
        with client(make_edge(first.port, second.port).url) as http, pytest.raises(httpx.RemoteProtocolError):
            http.post("/v1/completions", json={})
        assert len(first.asked + second.asked) == 1


def test_nobody_there_is_said_in_the_apis_shape(make_edge: MakeEdge) -> None:
    with client(make_edge(free_port()).url) as http:
        for path in ("/v1/completions", "/livez"):
            reply = http.post(path, json={})
            assert reply.status_code == 503
            assert reply.headers["content-type"] == "application/json"
            assert json.loads(reply.text) == {"error": {**AWAY, "code": "gateway_unavailable"}}


def test_an_upload_goes_through_as_it_comes(make_edge: MakeEdge) -> None:
    """The gateway has read the first part before the client sends the second: it has deadlines of its own for files."""
    reading = threading.Event()

    def parts() -> Iterator[bytes]:
        yield b"a" * 20_000
        assert reading.wait(60), "nobody read the first part"
        yield b"b" * (17 << 20)

    with Upstream(on_head=reading.set) as upstream, client(make_edge(upstream.port).url) as http:
        assert http.post("/v1/files", content=parts()).status_code == 200
        [seen] = upstream.asked
        assert len(seen.body) == 20_000 + (17 << 20)
