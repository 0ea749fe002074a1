"""The daily wave: learned over days, and forecast."""

import pytest

from axon.domain.scaling.wave import Wave


def test_a_daily_wave_is_forecast_from_the_second_day_on() -> None:
    wave = Wave()
    for minute in range(2 * 24 * 60):
        hour = minute / 60 % 24
        wave = wave.learn(minute * 60.0, 10.0 if hour < 8 else 40.0)
    assert wave.growth(7.9 * 3600, 1800) > 2.0
    assert wave.growth(3 * 3600.0, 1800) == pytest.approx(1.0)
    assert Wave().growth(0.0, 1800) == 1.0
