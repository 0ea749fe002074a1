"""A client that has closed its sending side (SHUT_WR) waits for its answer; one that has closed all has left."""

import socket

import pytest

from tests.gateway.http.serving import Served, closed, get, serving
from tests.journeys.server import wait_until
from tests.security.raw import answers


def test_a_client_that_sends_no_more_gets_its_answer() -> None:
    with serving() as served, served.connected() as line:
        line.sendall(get("/held"))
        wait_until(lambda: served.app.asked == ["/held"], "the request is there")
        line.shutdown(socket.SHUT_WR)
        assert line.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 100"
        served.ask(get("/other"))  # the loop has turned
        assert served.app.left == []
        served.release()
        found = [(answer.status, answer.body) for answer in answers(line, most=3)]
        assert found == [(100, b""), (200, b"/held")]  # and the connection is closed


def test_requests_that_were_sent_ahead_are_answered_too() -> None:
    with serving() as served, served.connected() as line:
        line.sendall(get("/held") + get("/b") + get("/c") + b"GET /d HTT")
        line.shutdown(socket.SHUT_WR)
        wait_until(lambda: served.app.asked == ["/held"], "the first is there")
        served.release()
        found = [answer.body for answer in answers(line, most=5) if answer.status == 200]
        assert found == [b"/held", b"/b", b"/c"]


def test_a_streamed_answer_goes_on() -> None:
    with serving() as served, served.connected() as line:
        line.sendall(get("/streamed"))
        assert line.recv(15, socket.MSG_PEEK | socket.MSG_WAITALL) == b"HTTP/1.1 200 OK"
        line.shutdown(socket.SHUT_WR)
        served.ask(get("/other"))  # the loop has turned
        served.release()
        [answer] = answers(line, most=2)
        assert answer.body == b"/streamed/streamed"


@pytest.mark.parametrize("path", ["/held", "/streamed"])
def test_a_client_that_has_left_is_seen(path: str) -> None:
    with serving() as served:
        with served.connected() as line:
            line.sendall(get(path))
            wait_until(lambda: served.app.asked == [path], "the request is there")
        wait_until(lambda: served.app.left == [path], "its application is told")


@pytest.mark.parametrize(
    "said",
    [b"GET /held HTTP/1.1\r\nHost: ax", b"POST /held HTTP/1.1\r\nHost: axon\r\nContent-Length: 5\r\n\r\nhalf"],
    ids=["headers", "a body"],
)
def test_a_request_that_can_never_be_whole_is_not_waited_for(patient: Served, said: bytes) -> None:
    with patient.connected() as line:
        line.sendall(said)
        line.shutdown(socket.SHUT_WR)
        assert closed(line)


def test_a_client_of_http_1_0_that_sends_no_more_has_left() -> None:
    with serving() as served, served.connected() as line:
        line.sendall(b"GET /held HTTP/1.0\r\n\r\n")
        wait_until(lambda: served.app.asked == ["/held"], "the request is there")
        line.shutdown(socket.SHUT_WR)
        wait_until(lambda: served.app.left == ["/held"], "its application is told")
