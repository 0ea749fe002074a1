"""A fleet that runs itself: workers come with a load and go without it, and many models share a machine for a few."""

import pytest

from tests.fleet.scaling_scene import GB, MOST, RATE, busy_workers, forty_models, scene, show, under_load
from tests.long import whole
from tests.services.nursery import COLD_STARTS

_REQUESTS, _RATE, _MOST = (2000, RATE, MOST) if whole() else (100, 4.0, 3)
_QUICK = {
    "control_scale_s": 0.5,
    "control_quiet_s": 3.0,
    "control_hold_s": 1.0,
    "admission_slo_ttft_default_s": 20.0,
}
"""For a short run: its crowd is late for one worker and in time for three."""
_MODELS, _ROOM, _ASKS, _SPAN_S = (40, 4, 80, 480.0) if whole() else (6, 2, 10, 12.0)
_MAX_SWAPS = 12


def test_the_most_workers_of_the_scene_can_serve_its_largest_load() -> None:
    assert busy_workers(RATE) < 1
    assert busy_workers(5 * RATE) < 0.8 * MOST


@pytest.mark.services
@pytest.mark.long("scaling")
@pytest.mark.timeout(1200)
def test_workers_come_with_five_times_the_load_and_drain_without_it_and_no_request_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(COLD_STARTS, "1")  # forked workers come before anybody has to wait for them
    with scene(**({} if whole() else _QUICK)) as opened:
        told = under_load(opened, _REQUESTS, rate=_RATE, most=_MOST)
    show(told, "load")
    assert told.failures == []
    assert told.answered == _REQUESTS
    assert 1 < max(told.counts) <= _MOST, "workers came"
    assert told.counts[-1] == 1, "they went"
    assert told.num_told > 0 or whole(), "who waited for a worker was told so"
    assert {each["action"] for each in told.decisions} == {"ensure", "stop"}
    assert all(each["reason"] and not each["error"] for each in told.decisions)


@pytest.mark.services
@pytest.mark.long("scaling")
@pytest.mark.timeout(1200)
def test_rare_requests_for_many_models_are_all_answered_on_a_machine_for_few() -> None:
    with scene(control_memory_bytes=_ROOM * GB, control_max_swaps=_MAX_SWAPS) as opened:
        told = forty_models(opened, _ASKS, num_models=_MODELS, over_s=_SPAN_S)
    show(told, f"{_MODELS} models")
    assert told.failures == []
    assert told.answered == _ASKS
    assert max(told.counts) <= _ROOM, "no more than fit"
    assert told.most_swaps <= _MAX_SWAPS
