"""The leases' contract. Missing is not expired: a changed run id tells them apart."""

import pytest

from axon.ports.live import Leases, Live
from tests.contracts.backends import LiveBackend


@pytest.fixture
def leases(live: Live) -> Leases:
    return live.leases


async def test_a_held_lease_is_alive_and_others_are_not(leases: Leases) -> None:
    await leases.hold("w1", 10.0)
    assert await leases.alive(["w1", "w2"]) == {"w1"}
    assert await leases.alive([]) == frozenset()


async def test_a_lease_that_is_not_renewed_lapses(lives: LiveBackend, leases: Leases) -> None:
    await leases.hold("w1", 0.1)
    await lives.pass_time(0.2)
    assert await leases.alive(["w1"]) == frozenset()


async def test_a_renewed_lease_lives_from_its_renewal_on(lives: LiveBackend, leases: Leases) -> None:
    await leases.hold("w1", 0.1)
    await leases.hold("w1", 10.0)
    await lives.pass_time(0.2)
    assert await leases.alive(["w1"]) == {"w1"}


async def test_a_shorter_renewal_shortens_the_lease(lives: LiveBackend, leases: Leases) -> None:
    await leases.hold("w1", 10.0)
    await leases.hold("w1", 0.1)
    await lives.pass_time(0.2)
    assert await leases.alive(["w1"]) == frozenset()


async def test_a_dropped_lease_ends_now_and_dropping_again_is_harmless(leases: Leases) -> None:
    await leases.hold("w1", 0.2)
    await leases.drop("w1")
    await leases.drop("w1")
    assert await leases.alive(["w1"]) == frozenset()


async def test_the_run_id_stays_while_nothing_is_lost(lives: LiveBackend, leases: Leases) -> None:
    run_id = await leases.run_id()
    await lives.pass_time(0.1)
    assert run_id
    assert await leases.run_id() == run_id


async def test_after_losing_everything_leases_are_missing_and_the_run_id_says_why(
    lives: LiveBackend, leases: Leases
) -> None:
    await leases.hold("w1", 10.0)
    run_id = await leases.run_id()
    await lives.lose_everything()
    assert await leases.alive(["w1"]) == frozenset()
    assert await leases.run_id() != run_id
