"""Lengths of time in expressions, multiplied by one factor."""

import pytest

from axon.monitoring.times import filled, milliseconds, scaled


@pytest.mark.parametrize(
    ("length", "factor", "expected"),
    [
        *(("5m", 1, "5m"), ("90s", 1, "90s"), ("60s", 1, "1m"), ("24h", 1, "1d"), ("0s", 1, "0s")),
        *(("5m", 1 / 120, "2500ms"), ("1h", 1 / 120, "30s"), ("3d", 1 / 120, "36m"), ("0s", 1 / 120, "0s")),
        ("1s", 1e-9, "1ms"),
    ],
)
def test_a_length_is_written_in_the_largest_unit_that_divides_it(length: str, factor: float, expected: str) -> None:
    assert scaled(length, factor) == expected


def test_windows_offsets_and_seconds_are_scaled_and_labels_are_not() -> None:
    written = 'rate(a{b="5m"}[1h]) > {60s} and a > a offset 10m and x{c=~"[5m]"} > 5'
    assert filled(written, 1 / 120).startswith('rate(a{b="5m"}[30s]) > 0.5 and a > a offset 5s')
    assert filled('a{b="c"} > {30m}', 1) == 'a{b="c"} > 1800'


def test_what_is_no_length_is_refused() -> None:
    with pytest.raises(ValueError, match="5 minutes"):
        milliseconds("5 minutes")
