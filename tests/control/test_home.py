"""Of several machines one launches a fleet's processes; the others wait until nobody can be there any more."""

from axon.adapters.live.memory.crowds import MemoryCrowds
from axon.control.home import KEPT_S, Home
from axon.control.leader import LAUNCHING, Leader
from axon.runtime.clock import FakeClock

EMPTY_S = 3.0


def home(crowds: MemoryCrowds, clock: FakeClock, machine: str) -> Home:
    return Home(crowds, clock, machine=machine, empty_s=EMPTY_S)


async def test_the_first_machine_is_the_home_for_all_its_controls_and_for_no_other(clock: FakeClock) -> None:
    crowds = MemoryCrowds(clock)
    one, two, other = (home(crowds, clock, machine) for machine in ("here", "here", "there"))
    for _ in range(5):
        assert [await each.is_ours() for each in (one, two, other)] == [True, True, False]
        clock.advance(1.0)


async def test_another_machine_becomes_the_home_when_nobody_has_been_there_for_long(clock: FakeClock) -> None:
    crowds = MemoryCrowds(clock)
    one, other = home(crowds, clock, "here"), home(crowds, clock, "there")
    assert (await one.is_ours(), await other.is_ours()) == (True, False)
    clock.advance(KEPT_S - 1)
    assert not await other.is_ours()
    clock.advance(2.0)
    assert not await other.is_ours(), "it is empty since now"
    clock.advance(EMPTY_S)
    assert await other.is_ours()
    assert not await one.is_ours()


async def test_a_live_that_lost_its_memory_moves_nobodys_home(clock: FakeClock) -> None:
    crowds = MemoryCrowds(clock)
    one, other = home(crowds, clock, "here"), home(crowds, clock, "there")
    assert (await one.is_ours(), await other.is_ours()) == (True, False)
    lost = MemoryCrowds(clock)
    one._crowds = other._crowds = lost
    assert not await other.is_ours(), "the home may come a moment later"
    clock.advance(EMPTY_S / 2)
    assert (await one.is_ours(), await other.is_ours()) == (True, False)
    clock.advance(EMPTY_S)
    assert (await one.is_ours(), await other.is_ours()) == (True, False)


async def test_a_control_of_another_machine_never_leads_the_launching(clock: FakeClock) -> None:
    crowds = MemoryCrowds(clock)
    there, here = (
        Leader(crowds, clock, lease_s=3.0, crowd=LAUNCHING, may_stand=home(crowds, clock, machine).is_ours)
        for machine in ("there", "here")
    )
    await here.look()
    for _ in range(20):
        await there.look()
        clock.advance(1.0)
        assert not there.leads(), "though the lease of the other one has ended"
    await here.look()
    assert here.leads()
