"""A worker is known to be there for as long as it is, and by a name that nobody else has."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from axon.adapters.live.memory.presences import MemoryPresences
from axon.bootstrap.worker.presence import named
from axon.domain.presence import Presence
from axon.errors import DependencyDown, Misconfigured
from axon.runtime.clock import Clock, SystemClock
from axon.settings import Settings
from axon.worker.config import WorkerConfig
from axon.worker.peers.presence import Announcer
from tests.contracts.builders import make_presence
from tests.sim.loop import SimLoop


@dataclass
class Flaky(MemoryPresences):
    """The twin, with its calls counted and failing at will."""

    clock: Clock
    num_puts: int = 0
    fails: bool = False
    said: list[Presence] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.clock)

    async def put(self, presence: Presence, *, ttl_s: float) -> bool:
        self.num_puts += 1
        if self.fails:
            raise DependencyDown()
        self.said.append(presence)
        return await super().put(presence, ttl_s=ttl_s)


@pytest.fixture
def presences() -> Flaky:
    return Flaky(SystemClock())


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(60.0):
        while not true():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)


@asynccontextmanager
async def running(announcer: Announcer) -> AsyncIterator[None]:
    task = asyncio.create_task(announcer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def announcer(presences: MemoryPresences, presence: Callable[[], Presence], *, every_s: float = 30.0) -> Announcer:
    return Announcer(presences, presence, every_s=every_s, clock=SystemClock())


async def test_a_worker_is_there_from_its_first_word_until_it_leaves(presences: Flaky) -> None:
    speaker = announcer(presences, lambda: make_presence("w1"))
    async with running(speaker):
        await until(lambda: speaker.heard)
        assert [each.worker for each in await presences.all("small")] == ["w1"]
    await speaker.leave()
    assert await presences.all("small") == []


async def test_it_speaks_again_in_its_time_and_at_once_when_its_free_slots_change(presences: Flaky) -> None:
    now = make_presence("w1")
    async with running(announcer(presences, lambda: now)):
        await until(lambda: presences.num_puts == 1)
        now = replace(now, load=replace(now.load, free_slots=0, num_tokens=99))
        await until(lambda: presences.num_puts == 2)
        now = replace(now, draining=True)
        await until(lambda: presences.num_puts == 3)
    assert [(each.load.free_slots, each.draining) for each in presences.said] == [(4, False), (0, False), (0, True)]


async def test_between_its_times_it_asks_for_its_vacancy_alone(presences: Flaky) -> None:
    asked, now, slots = 0, make_presence("w1"), 4

    def presence() -> Presence:
        nonlocal asked
        asked += 1
        return replace(now, load=replace(now.load, free_slots=slots))

    vacancies: list[tuple[int, bool]] = []

    def vacancy() -> tuple[int, bool]:
        vacancies.append((slots, False))
        return vacancies[-1]

    speaker = Announcer(presences, presence, every_s=30.0, clock=SystemClock(), vacancy=vacancy)
    async with running(speaker):
        await until(lambda: len(vacancies) >= 4)
        assert (asked, presences.num_puts) == (1, 1)
        slots = 0
        await until(lambda: presences.num_puts == 2)
    assert [each.load.free_slots for each in presences.said] == [4, 0]
    assert asked == 2


async def test_a_change_of_its_load_alone_waits_for_its_time(presences: Flaky) -> None:
    now = make_presence("w1")
    async with running(announcer(presences, lambda: now, every_s=0.5)):
        await until(lambda: presences.num_puts == 1)
        now = replace(now, load=replace(now.load, num_tokens=99))
        await until(lambda: presences.num_puts == 2)
    assert presences.said[1].load.num_tokens == 99


async def test_it_goes_on_when_nobody_listened_for_a_while(presences: Flaky) -> None:
    presences.fails = True
    speaker = announcer(presences, lambda: make_presence("w1"))
    async with running(speaker):
        await until(lambda: presences.num_puts == 2)
        assert not speaker.heard
        presences.fails = False
        await until(lambda: speaker.heard)


def test_while_nobody_can_hear_it_it_tries_once_a_second() -> None:
    loop = SimLoop()
    presences = Flaky(loop, fails=True)

    async def story() -> None:
        async with running(Announcer(presences, lambda: make_presence("w1"), every_s=1.0, clock=loop)):
            await asyncio.sleep(9.95)

    loop.run(story())
    assert presences.num_puts <= 10


async def test_a_second_worker_of_the_same_name_is_refused(presences: Flaky) -> None:
    first = announcer(presences, lambda: make_presence("w1", "first"), every_s=0.05)
    second = announcer(presences, lambda: make_presence("w1", "second"), every_s=0.05)
    async with running(first):
        await until(lambda: first.heard)
        with pytest.raises(Misconfigured, match="w1"):
            await asyncio.wait_for(second.run(), 60)
    assert not second.heard


async def test_a_new_life_of_a_worker_that_died_waits_until_the_old_one_is_forgotten(presences: Flaky) -> None:
    await presences.put(make_presence("w1", "died"), ttl_s=0.2)
    speaker = announcer(presences, lambda: make_presence("w1", "lives"), every_s=0.1)
    async with running(speaker):
        await until(lambda: speaker.heard)
    assert [each.incarnation for each in await presences.all("small")] == ["lives"]


def test_a_name_is_stable_and_two_workers_of_one_folder_have_two(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    with named(settings) as first, named(settings) as second:
        assert first != second
    with named(settings) as again:
        assert again == first
    with named(Settings(data_dir=tmp_path / "other")) as other:
        assert other not in (first, second)


def test_a_name_that_was_given_is_taken(tmp_path: Path) -> None:
    with named(Settings(data_dir=tmp_path, worker=WorkerConfig(name="gpu-7"))) as name:
        assert name == "gpu-7"


def test_a_name_that_another_worker_of_the_folder_has_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, worker=WorkerConfig(name="gpu-7", announce_s=0.01))
    with named(settings):
        with pytest.raises(Misconfigured, match="Another worker has the name gpu-7"), named(settings):
            raise AssertionError("it would load")
        with named(replace(settings, worker=replace(settings.worker, deployment="other"))) as name:
            assert name == "gpu-7"
    with named(settings) as name:
        assert name == "gpu-7"
