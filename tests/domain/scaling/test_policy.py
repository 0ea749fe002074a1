"""Policies that cannot work."""

import pytest

from axon.domain.scaling.policy import ScalingPolicy
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
