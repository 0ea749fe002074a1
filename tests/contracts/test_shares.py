"""The shares' contract. A missing counter is at the active minimum, which its reader knows and the port does not."""

import pytest

from axon.ports.live import Live, Shares
from tests.contracts.backends import LiveBackend

TENANTS = ("acme", "beta")


@pytest.fixture
def shares(live: Live) -> Shares:
    return live.shares


async def test_a_pool_nobody_charged_has_no_counters(shares: Shares) -> None:
    assert await shares.counters("small", TENANTS) == {}


async def test_charges_add_up_per_tenant(shares: Shares) -> None:
    await shares.charge("small", {"acme": 2.0, "beta": 1.0})
    await shares.charge("small", {"acme": 0.5})
    assert await shares.counters("small", TENANTS) == pytest.approx({"acme": 2.5, "beta": 1.0})


async def test_only_those_asked_for_are_told(shares: Shares) -> None:
    await shares.charge("small", {"acme": 2.0, "beta": 1.0, "": 4.0})
    assert await shares.counters("small", ["", "beta", "nobody"]) == pytest.approx({"": 4.0, "beta": 1.0})
    assert await shares.counters("small", []) == {}


async def test_a_charge_tells_the_counters_that_it_leaves(shares: Shares) -> None:
    await shares.charge("small", {"beta": 1.0})
    found = await shares.charge("small", {"acme": 2.0, "": 0.0}, floor=4.0, asked=["beta", "", "nobody", "acme"])
    assert found == pytest.approx({"beta": 1.0, "": 4.0, "acme": 6.0})
    assert await shares.charge("small", {"acme": 2.0}) == {}
    assert await shares.charge("small", {}, asked=["acme"]) == pytest.approx({"acme": 8.0})


async def test_pools_do_not_share(shares: Shares) -> None:
    await shares.charge("small", {"acme": 2.0})
    assert await shares.counters("large", TENANTS) == {}


async def test_a_floor_lifts_before_the_charge_and_never_lowers(shares: Shares) -> None:
    await shares.charge("small", {"acme": 2.0})
    await shares.charge("small", {"acme": 0.5}, floor=5.0)
    assert await shares.counters("small", TENANTS) == pytest.approx({"acme": 5.5})
    await shares.charge("small", {"acme": 0.0}, floor=1.0)
    assert await shares.counters("small", TENANTS) == pytest.approx({"acme": 5.5})


async def test_a_floor_makes_a_missing_counter(shares: Shares) -> None:
    await shares.charge("small", {"acme": 1.0, "": 0.0}, floor=5.0)
    assert await shares.counters("small", ["acme", ""]) == pytest.approx({"acme": 6.0, "": 5.0})


async def test_what_was_read_does_not_change_later(shares: Shares) -> None:
    await shares.charge("small", {"acme": 1.0})
    before = await shares.counters("small", TENANTS)
    await shares.charge("small", {"acme": 1.0})
    assert before == pytest.approx({"acme": 1.0})


async def test_after_losing_everything_all_tenants_are_equal_again(lives: LiveBackend, shares: Shares) -> None:
    await shares.charge("small", {"acme": 2.0, "beta": 1.0})
    await lives.lose_everything()
    assert await shares.counters("small", TENANTS) == {}
