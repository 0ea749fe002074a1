"""Of several controls one leads, and when it is gone another does."""

from axon.adapters.live.memory.crowds import MemoryCrowds
from axon.control.leader import Leader
from axon.errors import DependencyDown
from axon.runtime.clock import FakeClock


def make(crowds: MemoryCrowds, clock: FakeClock) -> Leader:
    return Leader(crowds, clock, lease_s=3.0)


async def test_the_first_leads_and_the_second_stands_by(clock: FakeClock) -> None:
    crowds = MemoryCrowds(clock)
    first, second = make(crowds, clock), make(crowds, clock)
    for _ in range(5):
        await first.look()
        await second.look()
        clock.advance(1.0)
        assert (first.leads(), second.leads()) == (True, False)


async def test_a_leader_that_is_silent_is_replaced_and_does_not_think_it_leads(clock: FakeClock) -> None:
    crowds = MemoryCrowds(clock)
    paused, second = make(crowds, clock), make(crowds, clock)
    await paused.look()
    clock.advance(3.5)
    assert not paused.leads()
    await second.look()
    assert second.leads()
    await paused.look()
    assert not paused.leads()


async def test_a_leader_that_leaves_is_replaced_at_the_next_look(clock: FakeClock) -> None:
    crowds = MemoryCrowds(clock)
    first, second = make(crowds, clock), make(crowds, clock)
    await first.look()
    await first.leave()
    assert not first.leads()
    await second.look()
    assert second.leads()


async def test_a_leader_that_cannot_renew_leads_to_the_end_of_its_lease_and_no_longer(clock: FakeClock) -> None:
    class Away(MemoryCrowds):
        fails = False

        async def enter(self, crowd: str, member: str, *, limit: int, ttl_s: float) -> bool:
            if self.fails:
                raise DependencyDown()
            return await super().enter(crowd, member, limit=limit, ttl_s=ttl_s)

    crowds = Away(clock)
    told: list[bool] = []
    leader = Leader(crowds, clock, lease_s=3.0, on_change=told.append)
    await leader.look()
    crowds.fails = True
    clock.advance(2.0)
    await leader.look()
    assert leader.leads()
    clock.advance(1.5)
    await leader.look()
    assert not leader.leads()
    assert told == [True, False]
