"""Sums of phases."""

from axon.profiling.summary import phase_sums
from tests.profiling.builders import steps_profile


def test_each_phase_is_summed_over_all_steps_with_its_slowest_hundredth() -> None:
    sums = {each.name: each for each in phase_sums(steps_profile(100))}
    assert list(sums) == ["step", "schedule", "forward", "device: batch"]
    assert (sums["step"].count, sums["step"].total_ms, sums["step"].mean_ms) == (100, 90.0, 0.9)
    assert sums["forward"].p99_ms == 0.798
    assert phase_sums(steps_profile(0)) == []
