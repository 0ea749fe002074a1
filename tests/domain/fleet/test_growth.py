"""When a full pool's requests wait for more workers instead of being refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.fleet.growth import FRESH_S, LAUNCHERS, Growth, awaited, extra_s, growth_of
from axon.domain.fleet.reconcile import GroupState
from axon.domain.fleet.replica import Group
from axon.domain.fleet.status import FleetStatus

times = st.floats(0, 1e6)
numbers = st.integers(0, 5)
states = st.builds(
    GroupState,
    group=st.builds(
        Group, st.sampled_from(["small", "other"]), st.sampled_from(["", "b"]), st.sampled_from(["", "gold"])
    ),
    wanted=numbers,
    reason=st.just("drawn"),
    starting=numbers,
    ready=numbers,
    more=numbers,
)
reports = st.builds(
    FleetStatus,
    at=times,
    leader=st.just("control-1"),
    term=numbers,
    launcher=st.sampled_from(["none", "process", "kubernetes", "external", "of a later release"]),
    groups=st.lists(states, max_size=6).map(tuple),
    problem=st.sampled_from(["", "the launcher does not answer"]),
)
growths = st.none() | st.builds(Growth, ready=numbers, more=numbers, reported=times, awaited_since=st.none() | times)


def report(*, launcher: str = "process", more: int = 2) -> FleetStatus:
    state = GroupState(group=Group("small"), wanted=1, reason="it says so", ready=1, more=more)
    return FleetStatus(at=5.0, leader="control-1", term=1, launcher=launcher, groups=(state,))


@given(growths, st.none() | reports, times)
def test_only_a_launcher_that_acts_makes_anybody_wait(
    before: Growth | None, status: FleetStatus | None, now: float
) -> None:
    growth = growth_of(before, status, "small", "", reported=now)
    if status is None or status.launcher not in LAUNCHERS:
        assert growth is None
    assert (growth is None) <= (extra_s(growth, patience_s=300.0, now=now) == 0)


@given(growths, times, st.floats(0, 600))
def test_nobody_waits_longer_than_the_patience_nor_for_workers_that_cannot_come(
    growth: Growth | None, now: float, patience_s: float
) -> None:
    seconds = extra_s(growth, patience_s=patience_s, now=now)
    assert seconds >= 0
    if growth is None or not growth.more or now - growth.reported > FRESH_S:
        assert seconds == 0
    elif growth.awaited_since is None or growth.awaited_since <= now:
        assert seconds <= patience_s


@given(growths.filter(lambda growth: growth is not None), st.floats(0, 600), st.floats(0, 600))
def test_who_comes_later_waits_no_longer_as_long_as_no_worker_comes(
    growth: Growth, at_s: float, later_s: float
) -> None:
    began = awaited(replace(growth, awaited_since=None, reported=0.0), now=0.0)
    again = awaited(began, now=at_s)
    assert again == began, "the first one counts"
    sooner, later = sorted((at_s, later_s))
    fresh = [replace(began, reported=now) for now in (sooner, later)]
    first, second = (extra_s(each, patience_s=300.0, now=each.reported) for each in fresh)
    assert first >= second
    if later > 300.0:
        assert second == 0


@given(growths.filter(lambda growth: growth is not None), reports, times)
def test_the_patience_begins_anew_with_a_worker_that_is_ready_and_with_nothing_else(
    before: Growth, status: FleetStatus, now: float
) -> None:
    growth = growth_of(before, status, "small", "", reported=now)
    if growth is not None:
        assert growth.awaited_since in (None, before.awaited_since)
        assert (growth.awaited_since == before.awaited_since) or growth.ready > before.ready


def test_a_group_that_may_gain_workers_makes_its_pools_requests_wait() -> None:
    growth = growth_of(None, report(), "small", "", reported=100.0)
    assert growth == Growth(ready=1, more=2, reported=100.0)
    assert extra_s(growth, patience_s=300.0, now=101.0) == 300.0
    assert extra_s(awaited(growth, now=101.0), patience_s=300.0, now=105.0) == 296.0
    assert extra_s(growth_of(None, report(more=0), "small", "", reported=100.0), patience_s=300.0, now=101.0) == 0
    for deployment, pool in (("small", "gold"), ("other", "")):
        assert extra_s(growth_of(None, report(), deployment, pool, reported=100.0), patience_s=9.0, now=100.0) == 0


@pytest.mark.parametrize("launcher", ["none", "external"])
def test_a_fleet_that_somebody_else_scales_refuses_as_one_of_a_fixed_size(launcher: str) -> None:
    assert growth_of(None, report(launcher=launcher), "small", "", reported=0.0) is None


def test_a_look_that_was_not_finished_changes_nothing_until_the_last_one_is_too_old() -> None:
    before = growth_of(None, report(), "small", "", reported=100.0)
    status = replace(report(), problem="the launcher does not answer", groups=())
    broken = growth_of(before, status, "small", "", reported=108.0)
    assert broken == before
    assert extra_s(broken, patience_s=300.0, now=100.0 + FRESH_S) > 0
    assert extra_s(broken, patience_s=300.0, now=100.1 + FRESH_S) == 0
