"""The presences' contract. Missing is not dead: it says that nobody says so now."""

import asyncio

import pytest

from axon.ports.live import Live, Presences
from tests.contracts.backends import LiveBackend
from tests.contracts.builders import make_presence


@pytest.fixture
def presences(live: Live) -> Presences:
    return live.presences


async def test_what_a_worker_says_comes_back_as_it_said_it(presences: Presences) -> None:
    said = make_presence("w1", free_slots=3, draining=True)
    assert await presences.put(said, ttl_s=10.0)
    assert await presences.all("small") == [said]


async def test_workers_come_by_their_names_and_the_last_word_counts(presences: Presences) -> None:
    for name in ("w2", "w1", "w3"):
        assert await presences.put(make_presence(name), ttl_s=10.0)
    assert await presences.put(make_presence("w1", free_slots=0), ttl_s=10.0)
    found = await presences.all("small")
    assert [(each.worker, each.load.free_slots) for each in found] == [("w1", 0), ("w2", 4), ("w3", 4)]


async def test_deployments_do_not_share_their_workers(presences: Presences) -> None:
    await presences.put(make_presence("w1", deployment="small"), ttl_s=10.0)
    await presences.put(make_presence("w1", "other-life", deployment="large"), ttl_s=10.0)
    assert [each.incarnation for each in await presences.all("large")] == ["other-life"]
    assert await presences.all("medium") == []


async def test_a_worker_that_says_nothing_for_its_time_is_missing(lives: LiveBackend, presences: Presences) -> None:
    await presences.put(make_presence("silent"), ttl_s=0.1)
    await presences.put(make_presence("talks"), ttl_s=10.0)
    await lives.pass_time(0.2)
    assert [each.worker for each in await presences.all("small")] == ["talks"]


async def test_a_worker_that_goes_on_saying_it_stays(lives: LiveBackend, presences: Presences) -> None:
    for ttl_s in (0.1, 10.0):
        assert await presences.put(make_presence("w1"), ttl_s=ttl_s)
    await lives.pass_time(0.2)
    assert len(await presences.all("small")) == 1


async def test_two_workers_cannot_have_one_name(presences: Presences) -> None:
    first = make_presence("w1", "first-life")
    assert await presences.put(first, ttl_s=10.0)
    assert not await presences.put(make_presence("w1", "second-life"), ttl_s=10.0)
    assert await presences.all("small") == [first]


async def test_of_many_who_want_a_name_at_once_one_gets_it(presences: Presences) -> None:
    wanted = [make_presence("w1", f"life-{number}") for number in range(10)]
    got = await asyncio.gather(*(presences.put(each, ttl_s=10.0) for each in wanted))
    assert got.count(True) == 1
    assert await presences.all("small") == [wanted[got.index(True)]]


async def test_a_name_is_free_again_when_its_worker_is_silent_or_leaves(
    lives: LiveBackend, presences: Presences
) -> None:
    await presences.put(make_presence("w1", "first-life"), ttl_s=0.1)
    await lives.pass_time(0.2)
    second = make_presence("w1", "second-life")
    assert await presences.put(second, ttl_s=10.0)
    await presences.drop(second)
    assert await presences.put(make_presence("w1", "third-life"), ttl_s=10.0)


async def test_who_leaves_is_missing_at_once_and_leaving_again_is_harmless(presences: Presences) -> None:
    said = make_presence("w1")
    await presences.put(said, ttl_s=10.0)
    await presences.drop(said)
    await presences.drop(said)
    assert await presences.all("small") == []


async def test_an_earlier_life_takes_nothing_from_a_later_one(presences: Presences) -> None:
    later = make_presence("w1", "second-life")
    await presences.put(later, ttl_s=10.0)
    await presences.drop(make_presence("w1", "first-life"))
    assert await presences.all("small") == [later]


async def test_after_losing_everything_nobody_is_there_until_they_say_so_again(
    lives: LiveBackend, presences: Presences
) -> None:
    said = make_presence("w1")
    await presences.put(said, ttl_s=10.0)
    await lives.lose_everything()
    assert await presences.all("small") == []
    assert await presences.put(said, ttl_s=10.0)
    assert await presences.all("small") == [said]
