"""Exports over HTTP to collectors that answer badly: each ends in time, and is a success only where it is one."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from axon.telemetry.config import TracesConfig
from axon.telemetry.traces.otlp import make_export
from tests.telemetry.traces.test_otlp import SPAN

_TIMEOUT_S = 0.5
_LONG_S = 20.0
Answer = Callable[[socket.socket, threading.Event], None]


@contextmanager
def _collector(answer: Answer) -> Iterator[str]:
    """A collector that reads requests and answers each in this way; the event says that the test is over."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=talk, args=(listening.accept()[0],), daemon=True).start()

        def talk(client: socket.socket) -> None:
            with client, suppress(OSError):
                client.recv(1 << 16)
                answer(client, over)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()


def _silent(client: socket.socket, over: threading.Event) -> None:
    over.wait(_LONG_S)


def _trickling(client: socket.socket, over: threading.Event) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    while not over.wait(0.05):
        client.sendall(b" ")


def _continuing(client: socket.socket, over: threading.Event) -> None:
    while not over.wait(0.01):
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def _redirecting(client: socket.socket, over: threading.Event) -> None:
    client.sendall(b"HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n")


@pytest.mark.parametrize("answer", [_silent, _trickling, _continuing, _redirecting])
def test_an_answer_that_is_none_ends_in_time_and_is_no_success(answer: Answer) -> None:
    with _collector(answer) as url:
        export, close = make_export(TracesConfig(endpoint=url, timeout_s=_TIMEOUT_S), service="axon-test")
        began, ended = time.monotonic(), threading.Event()
        taken: list[bool] = []

        def run() -> None:
            taken.append(export([SPAN]))
            ended.set()

        threading.Thread(target=run, daemon=True).start()
        assert ended.wait(_LONG_S / 2), "it waits for every byte anew"
        close()
    assert taken == [False]
    assert time.monotonic() - began < _LONG_S / 2


def test_of_an_endless_answer_a_little_is_read() -> None:
    sent = 0

    def endless(client: socket.socket, over: threading.Event) -> None:
        nonlocal sent
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not over.is_set() and sent < 256 << 20:
            sent += client.send(b" " * 65_536)

    with _collector(endless) as url:
        export, close = make_export(TracesConfig(endpoint=url, timeout_s=_LONG_S), service="axon-test")
        assert export([SPAN])
        close()
    assert sent < 64 << 20
