"""Short passes of the scenes of a fleet that runs itself."""

import pytest

from tests.fleet.scaling_scene import GB, forty_models, scene, under_load

pytestmark = pytest.mark.services


@pytest.mark.long("scaling")
def test_workers_come_with_the_load_and_go_with_it() -> None:
    with scene() as opened:
        told = under_load(opened, 400, most=3, quiet=True)
    assert told.failures == []
    assert told.answered == 400
    assert max(told.counts) >= 2
    assert all(each["reason"] for each in told.decisions)


@pytest.mark.long("scaling")
def test_six_models_share_a_machine_that_has_memory_for_two() -> None:
    with scene(control_memory_bytes=2 * GB, control_swap_run_s=1.0, control_swap_wait_s=3.0) as opened:
        told = forty_models(opened, 10, num_models=6, over_s=20.0, quiet=True)
    assert told.failures == []
    assert told.answered == 10
    assert max(told.counts) <= 2
    assert told.most_swaps <= 12
