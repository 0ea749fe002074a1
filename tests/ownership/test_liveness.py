"""Who is dead is known by a lease that ended, never by one that was forgotten."""

from collections.abc import Sequence

import pytest

from axon.adapters.live.memory.leases import MemoryLeases
from axon.adapters.live.memory.wakeups import MemoryWakeups
from axon.ownership.liveness import Liveness
from axon.ports.live import lifeline
from axon.runtime.clock import FakeClock

LEASE_S = 1.5


@pytest.fixture
def leases(clock: FakeClock) -> MemoryLeases:
    return MemoryLeases(clock)


@pytest.fixture
def liveness(leases: MemoryLeases, clock: FakeClock) -> Liveness:
    return Liveness(leases, clock, lease_s=LEASE_S)


async def test_nobody_owns_what_has_no_owner(liveness: Liveness) -> None:
    assert not await liveness.alive("")


async def test_an_owner_with_a_lease_is_alive_until_it_ends(
    liveness: Liveness, leases: MemoryLeases, clock: FakeClock
) -> None:
    await leases.hold("worker", LEASE_S)
    assert await liveness.alive("worker")
    clock.advance(LEASE_S - 0.01)
    assert await liveness.alive("worker")
    clock.advance(0.02)
    assert not await liveness.alive("worker")


async def test_a_renewed_lease_goes_on(liveness: Liveness, leases: MemoryLeases, clock: FakeClock) -> None:
    for _ in range(5):
        await leases.hold("worker", LEASE_S)
        clock.advance(0.5)
        assert await liveness.alive("worker")


async def test_a_dropped_lease_ends_at_once(liveness: Liveness, leases: MemoryLeases) -> None:
    await leases.hold("worker", LEASE_S)
    await leases.drop("worker")
    assert not await liveness.alive("worker")


async def test_after_a_loss_nobody_is_taken_for_dead_for_three_leases(
    liveness: Liveness, leases: MemoryLeases, clock: FakeClock
) -> None:
    await leases.hold("worker", LEASE_S)
    await liveness.look()
    leases.lose_everything()
    assert await liveness.alive("worker")
    assert await liveness.alive("somebody who died before")
    clock.advance(3 * LEASE_S - 0.01)
    assert await liveness.alive("worker")
    clock.advance(0.02)
    assert not await liveness.alive("worker")


async def test_who_renews_after_a_loss_lives_on_when_the_quiet_is_over(
    liveness: Liveness, leases: MemoryLeases, clock: FakeClock
) -> None:
    await liveness.look()
    leases.lose_everything()
    await liveness.look()
    clock.advance(3 * LEASE_S)
    await leases.hold("worker", LEASE_S)
    assert await liveness.alive("worker")
    assert not await liveness.alive("dead")


async def test_a_second_loss_begins_the_quiet_again(liveness: Liveness, leases: MemoryLeases, clock: FakeClock) -> None:
    await liveness.look()
    leases.lose_everything()
    assert await liveness.alive("worker")
    clock.advance(2 * LEASE_S)
    leases.lose_everything()
    assert await liveness.alive("worker")
    clock.advance(2 * LEASE_S)
    assert await liveness.alive("worker")
    clock.advance(LEASE_S)
    assert not await liveness.alive("worker")


async def test_the_quiet_is_counted_from_when_the_loss_is_noticed(
    liveness: Liveness, leases: MemoryLeases, clock: FakeClock
) -> None:
    await liveness.look()
    leases.lose_everything()
    clock.advance(100 * LEASE_S)
    assert await liveness.alive("worker")


async def test_each_process_notices_for_itself(leases: MemoryLeases, clock: FakeClock) -> None:
    one, other = (Liveness(leases, clock, lease_s=LEASE_S) for _ in range(2))
    await one.look()
    await other.look()
    leases.lose_everything()
    assert await one.alive("worker")
    assert await other.alive("worker")


async def test_a_process_that_has_seen_nothing_before_trusts_what_it_sees_first(
    leases: MemoryLeases, clock: FakeClock
) -> None:
    leases.lose_everything()
    assert not await Liveness(leases, clock, lease_s=LEASE_S).alive("worker")


async def test_many_owners_are_asked_about_together(leases: MemoryLeases, clock: FakeClock) -> None:
    asked: list[list[str]] = []

    class Counted(MemoryLeases):
        async def alive(self, owners: Sequence[str]) -> frozenset[str]:
            asked.append(list(owners))
            return await super().alive(owners)

    counted = Counted(clock)
    liveness = Liveness(counted, clock, lease_s=LEASE_S)
    for owner in ("w1", "w2"):
        await counted.hold(owner, LEASE_S)
    assert await liveness.living({"w1", "w2", "dead", ""}) == {"w1", "w2"}
    assert asked == [["dead", "w1", "w2"]]
    assert await liveness.living({""}) == frozenset()
    assert len(asked) == 1


async def test_an_owner_without_a_listener_on_its_lifeline_is_cut_off(leases: MemoryLeases, clock: FakeClock) -> None:
    wakeups = MemoryWakeups()
    liveness = Liveness(leases, clock, lease_s=LEASE_S, wakeups=wakeups)
    async with wakeups.listen(lifeline("here")):
        assert await liveness.cut_off({"", "here", "gone"}) == {"gone"}
    assert await liveness.cut_off({""}) == frozenset()


async def test_nobody_is_cut_off_after_the_service_lost_its_memory(leases: MemoryLeases, clock: FakeClock) -> None:
    liveness = Liveness(leases, clock, lease_s=LEASE_S, wakeups=MemoryWakeups())
    assert await liveness.cut_off({"worker"}) == {"worker"}
    leases.lose_everything()
    assert await liveness.cut_off({"worker"}) == frozenset()
    clock.advance(3 * LEASE_S + 0.01)
    assert await liveness.cut_off({"worker"}) == {"worker"}


async def test_nobody_is_cut_off_where_the_service_cannot_tell(leases: MemoryLeases, clock: FakeClock) -> None:
    class Cluster(MemoryWakeups):
        async def counts(self, channels: Sequence[str]) -> Sequence[int | None]:
            return [None] * len(channels)

    assert await Liveness(leases, clock, lease_s=LEASE_S).cut_off({"worker"}) == frozenset()
    cluster = Liveness(leases, clock, lease_s=LEASE_S, wakeups=Cluster())
    assert await cluster.cut_off({"worker"}) == frozenset()
