"""The arithmetic behind the path's figures: the event loop's lag, and CPU by part, request and token."""

import math
import subprocess
import sys

import pytest
from benchmarks.measures.cpu_time import Process, costs, cpu_by_part, read_processes, total
from benchmarks.measures.lag import Histogram, buckets, lag_figures, parse_lag, shown

from tests.journeys.server import wait_until

METRICS = """\
# TYPE axon_event_loop_lag_seconds histogram
axon_event_loop_lag_seconds_bucket{le="0.001"} 90.0
axon_event_loop_lag_seconds_bucket{le="0.01"} 98.0
axon_event_loop_lag_seconds_bucket{le="0.05"} 99.0
axon_event_loop_lag_seconds_bucket{le="0.1"} 100.0
axon_event_loop_lag_seconds_bucket{le="+Inf"} 100.0
axon_event_loop_lag_seconds_count 100.0
axon_step_seconds_bucket{le="0.001"} 7.0
"""


def test_the_lag_is_read_from_cumulative_buckets() -> None:
    assert parse_lag(METRICS).counts == {0.001: 90, 0.01: 8, 0.05: 1, 0.1: 1, math.inf: 0}
    assert parse_lag("").total == 0


def test_the_lag_of_a_load_is_the_difference_of_two_readings() -> None:
    before = Histogram({0.001: 80, 0.01: 8, 0.05: 0, 0.1: 1, math.inf: 0})
    assert parse_lag(METRICS).since(before).counts == {0.001: 10, 0.01: 0, 0.05: 1, 0.1: 0, math.inf: 0}


def test_percentiles_are_interpolated_and_the_largest_is_a_bound() -> None:
    figures = lag_figures(parse_lag(METRICS))
    assert figures["lag_p50_ms"] == pytest.approx(50 / 90)
    assert figures["lag_p99_ms"] == pytest.approx(50.0)
    assert figures["lag_max_at_most_ms"] == 100.0
    assert figures["lag_above_50_ms_share"] == 0.01


def test_a_lag_beyond_every_bucket_is_not_hidden() -> None:
    beyond = Histogram({0.001: 0, 5.0: 0, math.inf: 3})
    assert beyond.quantile_s(0.5) == 5.0
    assert math.isinf(beyond.at_most_s)
    assert buckets(beyond) == {"longer": 3}


def test_a_histogram_without_measurements_has_figures_too() -> None:
    assert set(lag_figures(Histogram({})).values()) == {0.0}


def test_the_histogram_is_shown_without_its_empty_buckets() -> None:
    lines = shown(parse_lag(METRICS)).splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["<=", "1", "ms"],
        ["<=", "10", "ms"],
        ["<=", "50", "ms"],
        ["<=", "100", "ms"],
    ]


def test_cpu_is_counted_with_the_part_that_started_a_process_and_the_engines_apart() -> None:
    processes = {
        1: Process(parent=0, cpu_s=100.0),
        10: Process(parent=1, cpu_s=2.0),
        11: Process(parent=10, cpu_s=8.0, is_engine=True),
        12: Process(parent=11, cpu_s=1.0),
        20: Process(parent=1, cpu_s=3.0),
        21: Process(parent=20, cpu_s=0.5),
        30: Process(parent=1, cpu_s=50.0),
    }
    assert cpu_by_part(processes, {"serve": 10, "redis": 20}) == {"serve": 2.0, "redis": 3.5, "engine": 9.0}


def test_a_request_and_a_token_are_told_apart_by_short_and_long_answers() -> None:
    by_part = costs(
        short_s={"gateway": 1.1, "redis": 0.2, "engine": 9.0},
        num_short=100,
        long_s={"gateway": 0.61, "redis": 0.12, "engine": 99.0},
        num_long=10,
        more_tokens=50,
    )
    assert by_part["gateway"] == {"request_ms": pytest.approx(10.0), "token_us": pytest.approx(1000.0)}
    assert total(by_part) == {"request_ms": pytest.approx(11.8), "token_us": pytest.approx(1200.0)}


def test_the_cpu_of_a_process_that_runs_is_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            wait_until(lambda: cpu_by_part(read_processes(), {"busy": busy.pid})["busy"] > 0, "it has used some time")
        finally:
            busy.kill()
