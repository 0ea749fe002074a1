from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.registry.rollout import WHOLE, RolloutState, bucket_of
from tests.domain.registry.builders import rollout


@given(st.text(max_size=20), st.text(max_size=40))
def test_a_bucket_is_within_the_whole(rollout_id: str, key: str) -> None:
    assert 0 <= bucket_of(rollout_id, key) < WHOLE


def test_buckets_are_the_same_in_every_process_and_release() -> None:
    assert [bucket_of("ro_1", f"key-{number}") for number in range(4)] == [5624, 8267, 4811, 6447]


@pytest.mark.parametrize("share", [100, 1000, 5000, 9900])
def test_keys_fall_below_a_share_as_often_as_it_says(share: int) -> None:
    num = 20_000
    below = sum(bucket_of("ro_7", f"session-{number}") < share for number in range(num))
    part = share / WHOLE
    assert abs(below - num * part) < 4.5 * sqrt(num * part * (1 - part))


def test_another_rollout_deals_the_sessions_anew() -> None:
    keys = [f"session-{number}" for number in range(1000)]
    both = sum(bucket_of("ro_1", key) < 5000 and bucket_of("ro_2", key) < 5000 for key in keys)
    assert 180 < both < 320


@pytest.mark.parametrize("state", RolloutState)
def test_only_a_rollout_that_goes_on_gives_the_new_version_a_share(state: RolloutState) -> None:
    going = state in (RolloutState.RUNNING, RolloutState.PAUSED)
    assert rollout(share=2500, state=state).share == (2500 if going else 0)
    assert not (going and state.is_over)
