"""Affinity over the twins: offers go to who holds a session, are bounded by its room, and fail towards the lane."""

from typing import Any

import pytest

from axon.adapters.live.memory.live import MemoryLive, open_memory_live
from axon.adapters.queue.memory import MemoryBroker, MemoryQueue
from axon.dispatch.affinity import Affinity, Residences, chat_affinity
from axon.dispatch.config import DispatchConfig
from axon.domain.job import Job
from axon.errors import DependencyDown
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_job, make_presence, make_residence

OWN = "small/@w1"


def follow_up(**changes: Any) -> Job:
    return make_job(prompt_ids=tuple(range(20)), **changes)


class Fleet:
    """Two workers, of which the first holds the session."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.live: MemoryLive = open_memory_live(self.clock, retention_s=60.0)
        self.broker = MemoryBroker(clock=self.clock)
        self.broker.declare(["small/00"])
        self.broker.declare_own(OWN)
        self.queue: MemoryQueue = self.broker.connect()
        self.residences = Residences(self.live.cache, ttl_s=60.0)
        self.affinity = Affinity(
            residences=self.residences,
            presences=self.live.presences,
            own_lanes=self.queue,
            config=DispatchConfig(),
            clock=self.clock,
        )

    async def open(self, *, free_slots: int = 2) -> "Fleet":
        await self.queue.open()
        await self.live.presences.put(make_presence("w1", free_slots=free_slots), ttl_s=60.0)
        await self.live.presences.put(make_presence("w2"), ttl_s=60.0)
        await self.residences.put(make_job(), make_residence("w1", at=self.clock.now()))
        return self


async def test_a_follow_up_is_in_its_workers_own_lane() -> None:
    fleet = await Fleet().open()
    assert await fleet.affinity.offer(follow_up(), b"job") == OWN
    assert fleet.broker.depth(OWN) == 1


@pytest.mark.parametrize(
    "job",
    [
        make_job(session="another"),
        follow_up(tenant="another"),
        follow_up(version="v2"),
        follow_up(session="", affinity=""),
        make_job(),
    ],
    ids=["another session", "another tenant", "another version", "no session", "no follow-up"],
)
async def test_what_is_held_for_one_is_nothing_to_another(job: Job) -> None:
    fleet = await Fleet().open()
    assert await fleet.affinity.offer(job, b"job") is None
    assert fleet.broker.depth(OWN) == 0


async def test_no_more_are_offered_than_the_worker_said_it_has_room_for() -> None:
    fleet = await Fleet().open(free_slots=2)
    lanes = [await fleet.affinity.offer(follow_up(), b"job") for _ in range(4)]
    assert lanes == [OWN, OWN, None, None]
    fleet.clock.advance(1.0)
    await fleet.live.presences.put(make_presence("w1", free_slots=1, at=201.0), ttl_s=60.0)
    assert [await fleet.affinity.offer(follow_up(), b"job") for _ in range(2)] == [OWN, None]


async def test_a_worker_that_is_gone_is_forgotten() -> None:
    fleet = await Fleet().open()
    assert await fleet.affinity.offer(follow_up(), b"job") == OWN
    await fleet.live.presences.drop(make_presence("w1"))
    fleet.clock.advance(1.0)
    assert await fleet.affinity.offer(follow_up(), b"job") is None
    assert fleet.affinity._offered == {}


async def test_a_worker_whose_lane_is_not_there_is_passed_over() -> None:
    fleet = await Fleet().open()
    await fleet.residences.put(make_job(), make_residence("w2", at=fleet.clock.now()))
    assert await fleet.affinity.offer(follow_up(), b"job") is None


async def test_a_service_that_is_away_leads_to_the_lane() -> None:
    fleet = await Fleet().open()
    await fleet.queue.aclose()
    assert await fleet.affinity.offer(follow_up(), b"job") is None

    async def away(key: str) -> bytes | None:
        raise DependencyDown("away")

    fleet.live.cache.get = away  # type: ignore[method-assign]
    assert await fleet.affinity.offer(follow_up(), b"job") is None


async def test_what_nobody_can_read_is_as_good_as_missing() -> None:
    fleet = await Fleet().open()
    await fleet.live.cache.put("residence/small/v1/acme/sess_1", b"\x01", ttl_s=60.0)
    assert await fleet.affinity.offer(follow_up(), b"job") is None


def test_the_turns_of_a_chat_share_its_beginning_and_other_chats_and_tenants_do_not() -> None:
    first = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    second = [*first, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Who are you?"}]
    other = [first[0], {"role": "user", "content": "Good day"}]
    assert chat_affinity("acme", first) == chat_affinity("acme", second)
    assert chat_affinity("acme", first) != chat_affinity("acme", other)
    assert chat_affinity("acme", first) != chat_affinity("else", first)
    assert chat_affinity("acme", first[:1])


class TestZones:
    async def opened(self, *, zone: str = "a", free_slots: int = 2, other: str = "b") -> Fleet:
        fleet = Fleet()
        fleet.affinity = Affinity(
            residences=fleet.residences,
            presences=fleet.live.presences,
            own_lanes=fleet.queue,
            config=DispatchConfig(),
            clock=fleet.clock,
            zone=zone,
        )
        await fleet.queue.open()
        await fleet.live.presences.put(make_presence("w1", free_slots=free_slots, zone="a"), ttl_s=60.0)
        await fleet.live.presences.put(make_presence("w2", zone=other), ttl_s=60.0)
        return fleet

    async def test_a_first_turn_goes_to_a_worker_of_its_gateways_zone(self) -> None:
        fleet = await self.opened()
        assert await fleet.affinity.offer(make_job(session="new"), b"job") == OWN

    async def test_a_full_zone_leaves_it_to_all(self) -> None:
        fleet = await self.opened(free_slots=0)
        assert await fleet.affinity.offer(make_job(session="new"), b"job") is None

    async def test_where_all_are_in_one_zone_the_lane_will_do(self) -> None:
        fleet = await self.opened(other="a")
        assert await fleet.affinity.offer(make_job(session="new"), b"job") is None

    async def test_who_holds_a_session_comes_before_who_is_near(self) -> None:
        fleet = await self.opened(zone="b")
        await fleet.residences.put(make_job(), make_residence("w1", at=fleet.clock.now()))
        assert await fleet.affinity.offer(follow_up(), b"job") == OWN
