"""Bytes, rate and time left, by a clock of the test's own."""

from axon.runtime.clock import FakeClock
from axon.weights.progress import Meter, Progress


def test_rate_and_time_left_are_those_of_the_last_seconds(clock: FakeClock) -> None:
    seen: list[Progress] = []
    meter = Meter("fetching", done=500, total=3000, clock=clock, on_progress=seen.append)
    for rate in (10, 100):
        for _ in range(11):
            clock.advance(1.0)
            meter.add(rate)
    assert seen[0].left_s is None
    assert seen[-1].done_bytes == 500 + 110 + 1100
    assert seen[-1].rate == 100.0
    assert seen[-1].left_s == (3000 - 1710) / 100


def test_what_was_there_before_counts_as_done_and_not_for_the_rate(clock: FakeClock) -> None:
    meter = Meter("fetching", done=1_000_000, total=2_000_000, clock=clock, on_progress=lambda _: None)
    clock.advance(1.0)
    meter.add(1000)
    assert meter.progress().rate == 1000.0


def test_progress_is_told_at_most_ten_times_a_second_and_always_at_the_end(clock: FakeClock) -> None:
    seen: list[Progress] = []
    meter = Meter("checking", done=0, total=1000, clock=clock, on_progress=seen.append)
    for _ in range(1000):
        clock.advance(0.001)
        meter.add(1)
    assert len(seen) <= 13
    assert seen[-1].done_bytes == 1000


def test_bytes_that_are_dropped_are_taken_back(clock: FakeClock) -> None:
    meter = Meter("fetching", done=0, total=1000, clock=clock, on_progress=lambda _: None)
    clock.advance(1.0)
    meter.add(800)
    clock.advance(1.0)
    meter.add(-800)
    assert meter.progress().done_bytes == 0
    assert meter.progress().rate >= 0
