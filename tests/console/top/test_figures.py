"""Numbers as short words."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.console.top.figures import age, counted, duration, number, percent, size


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (math.nan, "-"),
        (math.inf, "-"),
        (0, "0"),
        (0.04, "0"),
        (0.25, "0.2"),
        (1.0, "1"),
        (3, "3"),
        (9.94, "9.9"),
        (9.96, "10"),
        (999, "999"),
        (999.6, "1k"),
        (4_149, "4.1k"),
        (31_000, "31k"),
        (2_500_000, "2.5M"),
        (-12, "-12"),
        (1e30, ">999E"),
    ],
)
def test_a_number(value: float | None, shown: str) -> None:
    assert number(value) == shown


@given(st.floats(0, 1e18))
def test_a_number_is_short(value: float) -> None:
    assert 1 <= len(number(value)) <= 5


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        *((None, "-"), (math.nan, "-"), (0.0004, "0.4 ms"), (0.0123, "12 ms"), (0.9996, "1.0 s")),
        *((1.46, "1.5 s"), (9.96, "10 s"), (80.4, "80 s")),
    ],
)
def test_a_latency(seconds: float | None, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-3, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (11_100, "3 h 5 min"), (353_000, "4 d 2 h")],
)
def test_a_long_time(seconds: float, shown: str) -> None:
    assert age(seconds) == shown


@pytest.mark.parametrize(
    ("num_bytes", "shown"),
    [
        (0, "0 B"),
        (1000, "1000 B"),
        (1024, "1.0 KiB"),
        (2**29, "512 MiB"),
        (3.4 * 2**30, "3.4 GiB"),
        (2**60, "1024 PiB"),
    ],
)
def test_a_size(num_bytes: float, shown: str) -> None:
    assert size(num_bytes) == shown


def test_shares_and_nouns() -> None:
    assert (percent(None), percent(0.426), percent(1.0)) == ("-", "43%", "100%")
    assert (counted(1, "worker"), counted(0, "worker")) == ("1 worker", "0 workers")
