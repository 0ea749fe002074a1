"""An upgrade that the server does not heed changes nothing: the request has its body, and the body is no request."""

import socket

import pytest

from tests.gateway.http.serving import Served, get, serving
from tests.security.raw import answers

HIDDEN = get("/hidden")
FRAMINGS = {
    "length": (f"Content-Length: {len(HIDDEN)}", HIDDEN),
    "chunks": ("Transfer-Encoding: chunked", b"%x\r\n%b\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN)),
}


def post(*headers: str) -> bytes:
    return "\r\n".join(["POST /shown HTTP/1.1", "Host: axon", *headers, "", ""]).encode()


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize(
    "headers",
    [
        ("Connection: Upgrade", "Upgrade: h2c"),
        ("Upgrade: websocket", "Connection: keep-alive, upgrade", "Sec-WebSocket-Version: 13"),
        ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c, x", "HTTP2-Settings: AAMAAABkAAQAAP__"),
        ("Connection: keep-alive", "Connection: UPGRADE", "Upgrade:"),
    ],
    ids=["h2c", "websocket", "settings", "two lines"],
)
def test_a_body_behind_an_upgrade_is_the_requests_own(
    patient: Served, headers: tuple[str, ...], framing: str, size: int
) -> None:
    before = len(patient.app.asked), len(patient.app.bodies)
    header, body = FRAMINGS[framing]
    sent = post(*headers, header) + body + get("/next")
    with patient.connected() as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(sent), size):
            line.sendall(sent[start : start + size])
        assert [answer.body for answer in answers(line, most=2)] == [b"/shown", b"/next"]
    assert patient.app.asked[before[0] :] == ["/shown", "/next"]
    assert patient.app.bodies[before[1] :] == [HIDDEN, b""]


def test_a_request_that_asks_for_an_upgrade_may_close_its_connection(patient: Served) -> None:
    with patient.connected() as line:
        line.sendall(get("/last", "Connection: close, upgrade", "Upgrade: h2c") + get("/never"))
        assert [answer.body for answer in answers(line, most=2)] == [b"/last"]


def test_a_tunnel_is_refused() -> None:
    with serving() as served, served.connected() as line:
        line.sendall(b"CONNECT axon:80 HTTP/1.1\r\nHost: axon\r\n\r\n" + HIDDEN)
        assert [answer.status for answer in answers(line, most=2)] == [400]
        assert served.app.asked == []
