"""What a gateway makes of what the workers say: which versions there are, pools and rates."""

from dataclasses import replace
from typing import Any

import pytest

from axon.adapters.live.memory.presences import MemoryPresences
from axon.domain.presence import Presence
from axon.errors import Unavailable
from axon.gateway.offers.fleet import Fleet
from axon.runtime.clock import FakeClock
from axon.telemetry.metrics import Metrics
from tests.gateway.offers.builders import said


@pytest.fixture
def fleet(clock: FakeClock) -> Fleet:
    return Fleet("small", presences=MemoryPresences(clock), clock=clock, metrics=Metrics())


async def test_it_reads_what_the_workers_announce(clock: FakeClock) -> None:
    presences = MemoryPresences(clock)
    fleet = Fleet("small", presences=presences, clock=clock, metrics=Metrics())
    heard: list[Any] = []
    fleet.on_learned.append(heard.append)
    await presences.put(said("a"), ttl_s=5.0)
    await fleet.look()
    assert fleet.versions == {"v1"}
    assert [[each.worker for each in reading] for reading in heard] == [["a"]]


def test_a_version_is_absent_from_when_its_last_worker_was_seen(fleet: Fleet, clock: FakeClock) -> None:
    clock.advance(3.0)
    assert fleet.absent_s("v1") == 3.0, "nobody has been seen since the view began"
    fleet.learn([said("a")])
    clock.advance(2.0)
    assert fleet.absent_s("v1") == 0.0
    fleet.learn([said("a", draining=True), said("b", "v2")])
    clock.advance(4.0)
    assert (fleet.absent_s("v1"), fleet.absent_s("v2")) == (6.0, 0.0)


def test_a_pool_without_a_worker_is_refused_and_the_shared_one_waits(fleet: Fleet) -> None:
    fleet.learn([said("a"), replace(said("b"), pool="gold")])
    assert (fleet.pool(""), fleet.pool("gold")) == ("", "gold")
    fleet.learn([replace(said("b"), pool="gold", draining=True)])
    assert fleet.pool("") == ""
    with pytest.raises(Unavailable, match="'gold'") as refusal:
        fleet.pool("gold")
    assert refusal.value.code == "pool_unavailable"


def test_the_one_worker_of_a_process_serves_every_pool(clock: FakeClock) -> None:
    presences = MemoryPresences(clock)
    alone = Fleet("small", presences=presences, clock=clock, metrics=Metrics(), has_pools=False)
    assert alone.pool("gold") == ""


def test_what_workers_serve_counts_for_their_pool_while_none_of_it_has_room(fleet: Fleet) -> None:
    def busy(worker: str, pool: str, rate: float, free_slots: int = 0) -> Presence:
        presence = replace(said(worker), pool=pool)
        return replace(presence, load=replace(presence.load, tokens_per_s=rate, free_slots=free_slots))

    assert fleet.tokens_per_s() is None
    fleet.learn([busy("a", "", 100.0), busy("b", "", 300.0), busy("c", "gold", 50.0, free_slots=1)])
    assert (fleet.tokens_per_s(), fleet.tokens_per_s("gold")) == (400.0, None)
    fleet.learn([busy("a", "", 0.0), busy("c", "gold", 50.0)])
    assert (fleet.tokens_per_s(), fleet.tokens_per_s("gold")) == (400.0, 50.0)


def test_a_pool_without_a_worker_has_no_rate_and_keeps_the_last_one_for_a_forecast(fleet: Fleet) -> None:
    busy = replace(said("a"), load=replace(said("a").load, tokens_per_s=100.0, free_slots=0))
    fleet.learn([busy])
    assert (fleet.tokens_per_s(), fleet.last_tokens_per_s()) == (100.0, 100.0)
    fleet.learn([replace(busy, draining=True)])
    assert (fleet.tokens_per_s(), fleet.last_tokens_per_s()) == (None, 100.0)
    fleet.learn([])
    assert (fleet.tokens_per_s(), fleet.last_tokens_per_s(), fleet.last_tokens_per_s("gold")) == (None, 100.0, None)


def test_a_version_is_there_in_the_pool_of_a_worker_that_stays(fleet: Fleet) -> None:
    fleet.learn([said("a", "v1"), replace(said("b", "v2"), pool="gold"), said("c", "v3", draining=True)])
    there = [(version, pool) for version in ("v1", "v2", "v3") for pool in ("", "gold") if fleet.has(version, pool)]
    assert there == [("v1", ""), ("v2", "gold")]
    assert [fleet.has_pool(pool) for pool in ("", "gold", "other")] == [True, True, False]
