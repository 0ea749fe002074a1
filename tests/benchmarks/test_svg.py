from xml.etree import ElementTree

import pytest
from benchmarks.measures.svg import Axis, Series, bar_chart, line_chart, ticks


@pytest.mark.parametrize(
    ("high", "expected"),
    [(1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), (43.0, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]), (0.0, [0.0, 1.0])],
)
def test_ticks_are_round_and_reach_the_highest_value(high: float, expected: list[float]) -> None:
    assert ticks(high) == pytest.approx(expected)


def test_an_axis_may_run_downwards() -> None:
    assert [Axis(0.0, 10.0, 300.0, 100.0).at(value) for value in (0.0, 5.0, 10.0)] == [300.0, 200.0, 100.0]


def test_charts_are_whole_pages_with_their_names_escaped() -> None:
    series = [Series(name="a < b", points=[(1.0, 2.0), (3.0, 4.0)]), Series(name="c", points=[(0.0, 1.0)], dots=True)]
    lines = line_chart("Cost & time", x_label="x", y_label="y", series=series, shaded=(1.0, 2.0))
    bars = bar_chart("Rates", y_label="y", groups={"1": {"a": 1.0, "b": 2.0}, "4": {"a": 3.0}})
    for page in (lines, bars):
        assert ElementTree.fromstring(page).tag.endswith("svg")
    assert "a &lt; b" in lines
