"""Lanes: fixed, few, and the same in every process."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.lane import is_of_pool, lane_names, lane_of, own_lane, tier_of
from axon.domain.tenant import Tier, is_pool


@given(st.text(), st.integers(1, 64))
def test_every_tenant_has_one_of_the_lanes(tenant: str, num_lanes: int) -> None:
    lane = lane_of(tenant, "small", num_lanes)
    assert lane in lane_names("small", num_lanes)
    assert lane == lane_of(tenant, "small", num_lanes)


def test_lane_names_are_told_apart_and_counted() -> None:
    assert {"small/00", "small/01", "small/02"} < set(lane_names("small", 3))  # as releases before had them
    assert len(set(lane_names("small", 128))) == 3 * 128


def test_a_tenants_lane_never_changes_between_releases() -> None:
    lanes = [lane_of(tenant, "small", 16) for tenant in ("acme", "beta", "")]
    assert lanes == ["small/14", "small/03", "small/00"]


def test_many_tenants_spread_over_all_lanes() -> None:
    assert len({lane_of(f"tenant-{number}", "small", 16) for number in range(500)}) == 16


@given(st.integers(0, 1000), st.integers(1, 64))
def test_tenants_with_neighbouring_places_share_no_lane(first: int, num_lanes: int) -> None:
    lanes = {lane_of("any", "small", num_lanes, place=first + number) for number in range(num_lanes)}
    assert len(lanes) == num_lanes


@given(st.text(), st.integers(1, 64), st.sampled_from(Tier), st.sampled_from(["", "gold"]))
def test_a_lane_tells_its_tier_and_its_pool(tenant: str, num_lanes: int, tier: Tier, pool: str) -> None:
    lane = lane_of(tenant, "small", num_lanes, tier=tier, pool=pool)
    assert lane in lane_names("small", num_lanes, pool)
    assert tier_of(lane) is tier
    assert [each for each in ("", "gold", "go") if is_of_pool(lane, "small", each)] == [pool]
    assert lane != own_lane("small", lane.rpartition("/")[2])


@pytest.mark.parametrize(
    ("name", "fits"), [("", True), ("gold-1", True), ("Gold", False), ("a/b", False), ("-", False)]
)
def test_a_pools_name_is_short_and_plain(name: str, fits: bool) -> None:
    assert is_pool(name) is fits
