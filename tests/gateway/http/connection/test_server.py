"""The HTTP server by itself, over real sockets: what it closes, what it refuses, and what it answers one by one.

Nothing here looks at a clock.
"""

import asyncio
import contextlib
import socket
import threading

import pytest

from axon.gateway.http.connection import http_protocol as module
from tests.gateway.http.serving import LARGE, Served, closed, get, serving
from tests.journeys.server import wait_until
from tests.security.raw import PATIENCE_S, answers

SOON_S = 0.2


class TestDeadlines:
    @pytest.mark.parametrize(
        "said",
        [b"", b"\r\n", b"GET / HTTP/1.1\r\nHost: ax", get("/"), get("/") + b"\r\n", get("/") + b"GET /b HTTP/1.1\r\n"],
        ids=["nothing", "an empty line", "half", "one request", "an empty line after one", "half after one"],
    )
    def test_a_connection_without_a_whole_request_is_closed(self, said: bytes) -> None:
        with serving(header_timeout_s=SOON_S, keep_alive_s=1) as served, served.connected() as line:
            line.sendall(said)
            if said.startswith(get("/")):
                [answer] = answers(line, most=1)
                assert answer.status == 200
            assert closed(line)
            assert served.app.asked == ["/"] * said.startswith(get("/"))

    def test_the_deadline_is_for_the_headers_and_not_for_the_answer(self) -> None:
        with serving(header_timeout_s=SOON_S) as served, served.connected() as line, served.connected() as later:
            line.sendall(get("/held"))
            wait_until(lambda: served.app.asked == ["/held"], "the request is there")
            assert closed(later)
            with served.connected() as last:
                assert closed(last)  # a whole time-out has passed since
            served.release()
            assert [answer.body for answer in answers(line, most=1)] == [b"/held"]

    def test_a_body_that_nobody_waits_for_is_not_waited_for_long(self) -> None:
        with serving(header_timeout_s=SOON_S) as served, served.connected() as line:
            line.sendall(b"POST /early HTTP/1.1\r\nHost: axon\r\nContent-Length: 10\r\n\r\nhalf")
            [answer] = answers(line, most=1)
            assert answer.body == b"/early"
            assert closed(line)

    def test_a_body_that_comes_after_its_answer_leaves_the_connection_as_it_was(self, patient: Served) -> None:
        with patient.connected() as line:
            line.sendall(b"POST /early HTTP/1.1\r\nHost: axon\r\nContent-Length: 4\r\n\r\n")
            [early] = answers(line, most=1)
            line.sendall(b"body" + get("/next"))
            [following] = answers(line, most=1)
        assert (early.body, following.body) == (b"/early", b"/next")

    @pytest.mark.parametrize("framing", ["length", "chunks"])
    def test_a_client_that_sends_its_whole_body_first_reads_its_early_answer(self, framing: str) -> None:
        """Also where the connection ends with it: a close while the client still sends would be a reset."""
        body = b"x" * (8 << 20)
        head = "POST /early HTTP/1.1\r\nHost: axon\r\nConnection: close\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n" if framing == "length" else "Transfer-Encoding: chunked\r\n\r\n"
        chunks = body if framing == "length" else b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        with serving(header_timeout_s=PATIENCE_S) as served, served.connected() as line:
            line.sendall(head.encode())
            wait_until(lambda: served.app.asked == ["/early"], "it is answered")
            line.sendall(chunks)
            [answer] = answers(line, most=1)
            assert answer.body == b"/early"
            assert closed(line)
            wait_until(lambda: not served.server.server_state.connections, "nothing is left of it")

    def test_the_rest_of_a_last_body_is_not_waited_for_long(self) -> None:
        with serving(header_timeout_s=SOON_S) as served, served.connected() as line:
            line.sendall(b"POST /early HTTP/1.1\r\nHost: axon\r\nConnection: close\r\nContent-Length: 10\r\n\r\nhalf")
            [answer] = answers(line, most=1)
            assert answer.body == b"/early"
            assert closed(line)  # the sending side at once, the whole a moment later
            wait_until(lambda: not served.server.server_state.connections, "it is closed")

    def test_a_client_that_takes_nothing_of_its_answer_is_reset(self) -> None:
        """SO_LINGER of zero: else the system would keep for it what it has not sent yet, and send it later."""
        with serving(write_timeout_s=SOON_S) as served, served.connected() as line:
            line.sendall(get("/large"))
            wait_until(lambda: served.app.asked == ["/large"], "the request is there")
            wait_until(lambda: not served.server.server_state.connections, "it is cut off")
            with pytest.raises(ConnectionResetError):
                _read_all(line)

    def test_a_client_that_takes_its_answer_gets_the_whole_of_it(self) -> None:
        with serving(write_timeout_s=SOON_S) as served:
            [answer] = served.ask(get("/large"))
        assert len(answer.body) == LARGE


class TestSizes:
    def test_headers_up_to_the_limit_are_read_and_longer_ones_refused(self) -> None:
        with serving(max_header_bytes=1024) as served:
            room = 1024 - len(get("/", "X-Long: "))
            [fits] = served.ask(get("/", "X-Long: " + "x" * room))
            [long] = served.ask(get("/", "X-Long: " + "x" * (room + 1)))
            assert (fits.status, long.status, long.code) == (200, 431, "headers_too_long")
            assert served.app.asked == ["/"]

    def test_headers_that_come_in_pieces_are_counted_together(self) -> None:
        with serving(max_header_bytes=1024) as served, served.connected() as line:
            line.sendall(b"GET / HTTP/1.1\r\nHost: axon\r\n")
            with contextlib.suppress(ConnectionError):
                for number in range(100):
                    line.sendall(b"X-%d: %b\r\n" % (number, b"x" * 90))
            assert [answer.status for answer in answers(line, most=1)] in ([431], [])
            assert served.app.asked == []

    @pytest.mark.parametrize("framing", ["a length", "chunks"])
    def test_a_body_is_no_part_of_the_headers_however_it_comes(self, framing: str) -> None:
        body = b"\r\n\r\n" + b"x" * 100_000
        if framing == "a length":
            sent = b"POST / HTTP/1.1\r\nHost: axon\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        else:
            told = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in _parts(body, 500))
            sent = b"POST / HTTP/1.1\r\nHost: axon\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n" % told
        with serving(max_header_bytes=1024) as served:
            assert [answer.status for answer in served.ask(sent)] == [200]
            assert served.app.bodies == [body]

    def test_what_follows_a_body_is_bounded_and_read_by_nobody(self) -> None:
        head = b"POST / HTTP/1.1\r\nHost: axon\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"
        with serving(max_header_bytes=1024) as served:
            [answer] = served.ask(head + b"X-Trailer: 1\r\n\r\n")
            assert answer.status == 200
            assert served.app.header_names == [b"host", b"transfer-encoding"]
            with served.connected() as line, contextlib.suppress(ConnectionError):
                line.sendall(head + b"X-Trailer: " + b"x" * 5000)
                assert [each.status for each in answers(line, most=1)] == [431]


def _read_all(line: socket.socket) -> None:
    while line.recv(1 << 20):
        pass


def _parts(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


class TestPipelining:
    def test_a_request_waits_unread_for_the_answer_to_the_one_before(self) -> None:
        with serving() as served, served.connected() as line:
            line.sendall(get("/held") + get("/b") + get("/c"))
            wait_until(lambda: served.app.asked == ["/held"], "the first is there")
            served.ask(get("/other"))  # the loop has turned
            assert served.app.asked == ["/held", "/other"]
            served.release()
            assert [answer.body for answer in answers(line, most=3)] == [b"/held", b"/b", b"/c"]
            assert served.app.asked == ["/held", "/other", "/b", "/c"]

    @pytest.mark.parametrize("size", [1, 7, 24, 1000])
    def test_requests_sent_ahead_are_answered_in_order_however_they_are_cut(self, patient: Served, size: int) -> None:
        paths = [f"/{number}" for number in range(8)]
        sent = b"".join(
            get(path, "Content-Length: 6") + b"\r\n\r\nab" if number % 2 else get(path)
            for number, path in enumerate(paths)
        )
        with patient.connected() as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in _parts(sent, size):
                line.sendall(part)
            assert [answer.body.decode() for answer in answers(line, most=8)] == paths

    def test_a_client_that_leaves_is_seen_though_it_has_sent_more(self) -> None:
        with serving() as served:
            with served.connected() as line:
                line.sendall(get("/held") + get("/b"))
                wait_until(lambda: served.app.asked == ["/held"], "the first is there")
            wait_until(lambda: served.app.left == ["/held"], "its application is told")
            assert served.app.asked == ["/held"]

    def test_a_client_that_leaves_is_seen_though_it_has_sent_more_than_is_read(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The connection is not read any more, so nothing of it says that its client has left."""
        monkeypatch.setattr(module, "_FULL_PIPELINE_S", SOON_S)
        with serving() as served:
            with served.connected() as line:
                line.sendall(get("/held") + get("/b") * 10_000)
                wait_until(lambda: served.app.asked == ["/held"], "the first is there")
            wait_until(lambda: served.app.left == ["/held"], "its application is told")
            assert served.app.asked == ["/held"]

    def test_a_client_that_reads_may_send_ahead_more_than_is_read_at_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_FULL_PIPELINE_S", PATIENCE_S)
        num = 10_000
        with serving() as served, served.connected() as line:
            sending = threading.Thread(target=line.sendall, args=(get("/b") * num,))
            sending.start()
            assert sum(answer.body == b"/b" for answer in answers(line, most=num)) == num
            sending.join(PATIENCE_S)

    def test_what_cannot_be_read_is_refused_after_the_answer_before_it(self) -> None:
        with serving() as served, served.connected() as line:
            line.sendall(get("/held") + b"no HTTP at all\r\n\r\n" + get("/b"))
            wait_until(lambda: served.app.asked == ["/held"], "the first is there")
            served.release()
            first, second = answers(line, most=3)
            assert (first.body, second.status, second.code) == (b"/held", 400, "invalid_http")
            assert served.app.asked == ["/held"]


class TestSurplus:
    def test_a_connection_beyond_the_most_serves_one_request(self) -> None:
        with serving(max_connections=1) as served, served.connected() as first:
            first.sendall(get("/first"))
            [answer] = answers(first, most=1)
            assert "connection" not in answer.headers
            found = served.ask(get("/a") + get("/b"), most=2)
            assert [(each.body, each.headers.get("connection")) for each in found] == [(b"/a", "close")]

    def test_a_connection_beyond_the_most_must_ask_at_once(self) -> None:
        with serving(max_connections=1, header_timeout_s=PATIENCE_S) as served, served.connected() as first:
            wait_until(lambda: len(served.server.server_state.connections) == 1, "the first is there")
            with served.connected() as surplus:
                assert closed(surplus)
            first.sendall(get("/first"))
            assert [answer.body for answer in answers(first, most=1)] == [b"/first"]

    def test_of_too_many_beyond_the_most_each_is_told_and_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_MAX_SURPLUS_CONNECTIONS", 1)
        with serving(max_connections=1) as served, served.connected(), served.connected():
            wait_until(lambda: len(served.server.server_state.connections) == 2, "both are there")
            with served.connected() as third:
                [answer] = answers(third, most=1)
                assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "overloaded", "1")
                assert closed(third)


class TestBursts:
    def test_many_connections_at_once_are_accepted_in_a_few_passes_of_the_loop(self) -> None:
        """Whoever connects behind them waits for so many passes, and each pass also serves who is there."""
        num = 150

        async def num_passes(served: Served, lines: list[socket.socket]) -> int:
            for line in lines:
                line.connect(served.address)
            passes = 0
            while len(served.server.server_state.connections) < num:
                await asyncio.sleep(0)
                passes += 1
            return passes

        with serving() as served, contextlib.ExitStack() as stack:
            lines = [stack.enter_context(socket.socket()) for _ in range(num)]
            counting = asyncio.run_coroutine_threadsafe(num_passes(served, lines), served.loop)
            assert counting.result(PATIENCE_S) < num / 5
            lines[-1].settimeout(PATIENCE_S)
            lines[-1].sendall(get("/last"))
            assert [answer.body for answer in answers(lines[-1], most=1)] == [b"/last"]


class TestStopping:
    def test_who_has_connected_before_is_answered_even_if_nobody_had_accepted_it(self) -> None:
        async def stop(served: Served, lines: list[socket.socket]) -> None:
            """The loop does not turn between the connections and the end: they wait in the system's queue."""
            for line in lines:
                line.connect(served.address)
                line.sendall(get("/late"))
            await served.server.shutdown([served.listener])

        with serving() as served, contextlib.ExitStack() as stack:
            lines = [stack.enter_context(socket.socket()) for _ in range(5)]
            for line in lines:
                line.settimeout(PATIENCE_S)
            stopping = asyncio.run_coroutine_threadsafe(stop(served, lines), served.loop)
            wait_until(lambda: not served.server.is_listening, "it does not listen any more")
            assert [[each.body for each in answers(line, most=2)] for line in lines] == [[b"/late"]] * 5
            stopping.result(PATIENCE_S)
            with pytest.raises(ConnectionRefusedError):
                served.connected()

    def test_a_connection_that_has_just_been_made_brings_its_request(self) -> None:
        with serving() as served, served.connected() as fresh, served.connected() as idle:
            idle.sendall(get("/idle"))
            [answer] = answers(idle, most=1)
            assert answer.status == 200
            served.server.should_exit = True
            assert closed(idle)
            fresh.sendall(get("/fresh"))
            assert [(each.body, each.headers["connection"]) for each in answers(fresh, most=2)] == [
                (b"/fresh", "close")
            ]

    def test_an_answer_that_is_on_its_way_comes_to_its_end(self) -> None:
        with serving() as served, served.connected() as line:
            line.sendall(get("/held"))
            wait_until(lambda: served.app.asked == ["/held"], "the request is there")
            served.server.should_exit = True
            wait_until(lambda: not served.server.is_listening, "it does not listen any more")
            assert not served.server.ended.is_set()
            served.release()
            assert [answer.body for answer in answers(line, most=2)] == [b"/held"]
            wait_until(served.server.ended.is_set, "it has ended")
