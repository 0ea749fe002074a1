"""Lanes: fixed, few, and the same in every process."""

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.lane import lane_names, lane_of


@given(st.text(), st.integers(1, 64))
def test_every_tenant_has_one_of_the_lanes(tenant: str, num_lanes: int) -> None:
    lane = lane_of(tenant, "small", num_lanes)
    assert lane in lane_names("small", num_lanes)
    assert lane == lane_of(tenant, "small", num_lanes)


def test_lane_names_are_told_apart_and_counted() -> None:
    assert lane_names("small", 3) == ("small/00", "small/01", "small/02")
    assert len(set(lane_names("small", 128))) == 128


def test_a_tenants_lane_never_changes_between_releases() -> None:
    lanes = [lane_of(tenant, "small", 16) for tenant in ("acme", "beta", "")]
    assert lanes == ["small/14", "small/03", "small/00"]


def test_many_tenants_spread_over_all_lanes() -> None:
    assert len({lane_of(f"tenant-{number}", "small", 16) for number in range(500)}) == 16
