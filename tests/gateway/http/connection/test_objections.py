"""RFC 9112: what the parser reads and a server must refuse all the same, before any application sees it."""

import pytest

from tests.gateway.http.serving import Served, get, serving
from tests.security.raw import answers


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400, "invalid_host"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "invalid_host"),
        (b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400, "invalid_host"),
        (b"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400, "invalid_host"),
        (b"GET / HTTP/1.0\r\nHost: \r\n\r\n", 400, "invalid_host"),
        (b"GET / HTTP/1.1\r\nHost: /livez\r\n\r\n", 400, "invalid_host"),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "invalid_host"),
        (b"GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", 400, "invalid_host"),
        (b"GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n", 400, "invalid_host"),
        (b"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", 400, "invalid_host"),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, "http_version_not_supported"),
        (get("/", "Transfer-Encoding: gzip, chunked"), 501, "unsupported_transfer_encoding"),
        (
            get("/", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
            400,
            "invalid_http",
        ),
        (b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "invalid_http"),
        (get("/", "Expect: a-miracle"), 417, "unsupported_expectation"),
        (get("/", "Content-Length: 1", "Transfer-Encoding: chunked"), 400, "invalid_http"),
        (get("/", "Content-Length: one"), 400, "invalid_http"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "invalid_http"),
    ],
    ids=[
        "no Host",
        "two Hosts",
        "two Hosts of 1.0",
        "an empty Host",
        "an empty Host of 1.0",
        "a path for a Host",
        "two words for a Host",
        "a user in a Host",
        "two ports in a Host",
        "an address without brackets",
        "HTTP 2.0",
        "another coding",
        "chunked twice",
        "chunked in 1.0",
        "another expectation",
        "a length and chunks",
        "a length that is no number",
        "TLS",
    ],
)
def test_a_request_that_http_forbids_is_refused_and_its_connection_closed(sent: bytes, status: int, code: str) -> None:
    with serving() as served:
        [answer] = served.ask(sent, most=2)
        assert (answer.status, answer.code, answer.headers["connection"]) == (status, code, "close")
        assert served.app.asked == []


@pytest.mark.parametrize(
    "host",
    ["axon", "Chat.Example.COM.", "a_b-c.example:8000", "127.0.0.1:", "[::1]", "[2001:db8::1]:80", "caf%C3%A9"],
)
def test_every_host_that_it_allows_is_answered(patient: Served, host: str) -> None:
    [answer] = patient.ask(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
    assert answer.status == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        get("/", "Expect: 100-Continue"),
        b"POST / HTTP/1.1\r\nHost: axon\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
    ],
    ids=["1.0 without Host", "the known expectation", "chunks"],
)
def test_what_it_allows_is_answered(patient: Served, sent: bytes) -> None:
    with patient.connected() as line:
        line.sendall(sent)
        assert next(answer.status for answer in answers(line, most=2) if answer.status != 100) == 200
