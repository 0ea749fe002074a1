"""Memory by allocation: a known line is found, and tracing is never left on."""

import threading
import tracemalloc

import pytest

from axon.profiling import memory
from axon.profiling.memory import record_memory, resident_bytes

HELD = 300_000


def test_the_line_that_allocates_is_found_and_tracing_is_off_again() -> None:
    kept: list[bytearray] = []
    stop, begun = threading.Event(), threading.Event()

    def allocate() -> None:
        begun.wait()
        while not tracemalloc.is_tracing():
            pass
        kept.append(bytearray(HELD))
        stop.set()

    thread = threading.Thread(target=allocate)
    thread.start()
    begun.set()
    profile = record_memory(30.0, stop)
    thread.join()
    assert not tracemalloc.is_tracing()
    largest = profile.lines[0]
    assert largest.num_bytes >= HELD
    line = allocate.__code__.co_firstlineno + 4
    assert largest.place.endswith(f"test_memory.py:{line}")
    assert profile.peak_bytes >= profile.held_bytes >= HELD
    assert profile.resident_bytes > HELD
    assert len(kept) == 1


def test_it_ends_early_when_watching_takes_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_TRACE_BYTES", 0)
    profile = record_memory(60.0, threading.Event())
    assert profile.is_cut
    assert profile.seconds < 60.0
    assert not tracemalloc.is_tracing()


def test_tracing_that_was_on_before_stays_on() -> None:
    tracemalloc.start()
    try:
        stop = threading.Event()
        stop.set()
        record_memory(1.0, stop)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_the_process_has_memory() -> None:
    assert resident_bytes() > 1 << 20
