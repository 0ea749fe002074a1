"""What stands in the headers of every answer."""

import pytest

from axon.gateway.edge import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0ms"), (0.0121, "13ms"), (0.9995, "1000ms"), (1, "1s"), (1.5, "1.5s"), (60, "1m0s"), (366.25, "6m6.25s")],
)
def test_durations_are_written_as_go_writes_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text
