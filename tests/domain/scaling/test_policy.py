"""Policies that cannot work, and minimums by the clock."""

import pytest

from axon.domain.scaling.policy import Floor, ScalingPolicy
from axon.errors import InvalidInput


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("min_replicas", ScalingPolicy(min_replicas=3, max_replicas=2)),
        ("utilisation_low", ScalingPolicy(utilisation_low=0.9)),
        ("backlog_down", ScalingPolicy(backlog_down=2.0)),
        ("target_wait_s", ScalingPolicy(target_wait_s=float("nan"))),
    ],
)
def test_a_policy_that_cannot_work_is_refused_by_the_name_of_its_field(name: str, policy: ScalingPolicy) -> None:
    with pytest.raises(InvalidInput) as refused:
        policy.check()
    assert refused.value.param == name
    ScalingPolicy().check()


def test_a_minimum_by_the_clock_holds_in_its_hours_alone() -> None:
    night = ScalingPolicy(floors=(Floor(start_s=22 * 3600.0, end_s=6 * 3600.0, replicas=4),))
    assert [night.least(hour * 3600.0) for hour in (21, 22, 23, 0, 5, 6)] == [1, 4, 4, 4, 4, 1]
