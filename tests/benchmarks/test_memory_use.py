"""Samples of a server's memory, and the streams that it has to hold meanwhile."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from benchmarks.measures.held import Streams
from benchmarks.measures.load import Endpoint
from benchmarks.measures.memory_use import Sample, drift, held_figures, rss_bytes, tcp_bytes, watch

from tests.journeys.server import wait_until


def samples(*mega_bytes: float) -> list[Sample]:
    return [Sample(float(index), int(each * 1e6)) for index, each in enumerate(mega_bytes)]


def test_drift_compares_the_ends_and_not_single_samples() -> None:
    assert drift(samples(100, 100, 140, 100, 100, 100)) == 1.0
    assert drift(samples(100, 100, 100, 110, 110, 110)) == pytest.approx(1.1)


def test_what_settles_first_is_left_out() -> None:
    grows_first = samples(50, 60, 90, 100, 100, 100, 100, 100, 100, 100, 100)
    assert drift(grows_first) > 1.05
    assert drift(grows_first, settle_share=0.3) == 1.0


def test_bytes_each_are_the_growth_over_what_is_held() -> None:
    figures = held_figures(1000, 90_000_000, samples(100, 100, 100), settle_share=0.0)
    assert figures["rss_bytes_each"] == 10_000
    assert (figures["rss_mb_before"], figures["rss_mb_last"], figures["drift"]) == (90.0, 100.0, 1.0)


def test_a_watch_looks_at_its_times_and_does_something_meanwhile() -> None:
    now = [100.0]
    waited: list[float] = []

    def meanwhile(left_s: float) -> None:
        waited.append(left_s)
        now[0] += left_s

    seen = watch(os.getpid(), 10.0, 3, meanwhile, lambda: now[0])
    assert [each.at_s for each in seen] == [0.0, 5.0, 10.0]
    assert waited == [5.0, 5.0]
    assert all(each.rss_bytes > 1_000_000 for each in seen)


def test_memory_is_read_from_the_system() -> None:
    assert rss_bytes(os.getpid()) > 1_000_000
    assert tcp_bytes() >= 0


@contextmanager
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        yield listening


def test_a_stream_that_is_cut_off_is_asked_for_anew() -> None:
    with listener() as server:
        endpoint = Endpoint(port=server.getsockname()[1], model="any")
        with Streams(endpoint, {"prompt": "p"}, reads=False) as streams:
            streams.open(2)
            first, second = (server.accept()[0] for _ in range(2))
            assert b'"prompt": "p", "model": "any"' in first.recv(4096)
            first.close()

            def came_again() -> bool:
                streams.turn(0.1)
                return streams.num_reset == 1

            wait_until(came_again, "the first stream was asked for anew")
            assert (streams.num_open, streams.num_opened) == (2, 3)
            second.close()


def sent_until_full(connection: socket.socket) -> int:
    """Bytes that the buffers of a connection take while nobody reads."""
    connection.setblocking(False)
    num_bytes = 0
    with suppress(BlockingIOError):
        while True:
            num_bytes += connection.send(bytes(1 << 16))
    return num_bytes


def test_a_reader_that_never_reads_leaves_everything_unread() -> None:
    with listener() as server:
        endpoint = Endpoint(port=server.getsockname()[1], model="any")
        with Streams(endpoint, {}, reads=False) as streams:
            streams.open(1)
            accepted, _ = server.accept()
            with accepted:
                assert sent_until_full(accepted) > 0
                streams.turn(0.1)
                assert (streams.num_open, streams.num_reset) == (1, 0)


def test_a_reader_of_a_silent_stream_takes_what_comes_and_stays() -> None:
    with listener() as server:
        endpoint = Endpoint(port=server.getsockname()[1], model="any")
        with Streams(endpoint, {}, reads=True) as streams:
            streams.open(1)
            accepted, _ = server.accept()
            with accepted:
                accepted.sendall(b": still there\n\n")
                streams.turn(1.0)
                assert (streams.num_open, streams.num_reset) == (1, 0)
                accepted.sendall(b"data: [DONE]\n\n")

                def ended() -> bool:
                    streams.turn(0.1)
                    return streams.num_reset == 1

                wait_until(ended, "the stream's end was seen")
