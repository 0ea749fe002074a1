"""Intervals of ratios, and the plots of a draft head."""

import math

import pytest
from benchmarks.measures.pairs import batch_chart, interval, speed_chart


def test_the_interval_holds_the_mean_and_shrinks_with_more_pairs() -> None:
    few, many = interval([1.1, 1.3, 1.2]), interval([1.1, 1.3, 1.2] * 6)
    assert few["ratio"] == pytest.approx(many["ratio"]) == pytest.approx((1.1 * 1.3 * 1.2) ** (1 / 3))
    assert few["low"] < many["low"] < many["ratio"] < many["high"] < few["high"]
    assert interval([2.0])["high"] == math.inf
    assert interval([1.5, 1.5]) == pytest.approx({"ratio": 1.5, "low": 1.5, "high": 1.5})


def test_a_plot_has_every_kind_of_text() -> None:
    row = {"ratio": 1.3, "acceptance": 0.4}
    found = {"chat": {1: row, 4: row}, "repetitive": {1: row}}
    for chart in (batch_chart("by streams", found), speed_chart("by acceptance", found)):
        assert "chat" in chart
        assert "repetitive" in chart
