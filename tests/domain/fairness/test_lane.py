"""Lanes: fixed, few, and the same in every process."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.fairness.lane import (
    is_lane_of,
    is_of_pool,
    lane_names,
    lane_of,
    letter_of,
    own_lane,
    tier_of,
    with_letter,
)
from axon.domain.registry.deployment import LETTERS
from axon.domain.tenants.tenant import Tier, is_pool


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


def test_a_versions_letter_is_in_the_names_of_its_lanes_and_the_first_version_has_none() -> None:
    assert lane_of("acme", "small", 16, letter="b") == "small:b/14"
    assert lane_of("acme", "small", 16, letter="b", pool="gold", tier=Tier.FLEX) == "small:b#gold/flex/14"
    assert own_lane("small", "w1", "b") == "small:b/@w1"
    names = [lane_names("small", 128, pool, letter) for pool in ("", "gold") for letter in ("", *LETTERS)]
    assert len({lane for lanes in names for lane in lanes}) == 3 * 128 * 10


letters = st.sampled_from(["", *LETTERS])


@given(st.sampled_from(["small", "org/small", "s#1", "x:b"]), letters, letters, st.sampled_from(Tier), st.booleans())
def test_a_lane_becomes_that_of_another_version(name: str, old: str, new: str, tier: Tier, pooled: bool) -> None:
    pool = "gold" if pooled else ""
    lane = lane_of("acme", name, 16, tier=tier, pool=pool, letter=old)
    assert (is_lane_of(lane, name), letter_of(lane, name)) == (True, old)
    assert with_letter(lane, name, new) == lane_of("acme", name, 16, tier=tier, pool=pool, letter=new)
    assert with_letter(with_letter(lane, name, new), name, old) == lane


@pytest.mark.parametrize(
    "lane", ["small", "small/", "small/@w1", "small:b/@w1", "smaller/07", "small:z/07", "small:/07", "small/x/07", ""]
)
def test_what_is_no_tenants_lane_is_told_apart(lane: str) -> None:
    assert not is_lane_of(lane, "small")
    assert with_letter(lane, "small", "b") == lane


@given(st.text(), st.integers(1, 64), st.sampled_from(Tier), st.sampled_from(["", "gold"]), letters)
def test_a_lane_tells_its_tier_and_its_pool(tenant: str, num_lanes: int, tier: Tier, pool: str, letter: str) -> None:
    lane = lane_of(tenant, "small", num_lanes, tier=tier, pool=pool, letter=letter)
    assert lane in lane_names("small", num_lanes, pool, letter)
    assert tier_of(lane) is tier
    assert [each for each in ("", "gold", "go") if is_of_pool(lane, "small", each)] == [pool]
    assert lane != own_lane("small", lane.rpartition("/")[2])


@pytest.mark.parametrize(
    ("name", "fits"), [("", True), ("gold-1", True), ("Gold", False), ("a/b", False), ("-", False)]
)
def test_a_pools_name_is_short_and_plain(name: str, fits: bool) -> None:
    assert is_pool(name) is fits
