"""A gateway asks every process that answers, and each answers for itself and its engines alone."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from axon.adapters.live.memory.live import MemoryLive, open_memory_live
from axon.errors import AlreadyProfiled, EngineDied, InvalidInput, NotFound
from axon.profiling import asking
from axon.profiling.asking import Profiles, chosen
from axon.profiling.orders import ORDERS, Subject
from axon.profiling.packing import pack
from axon.profiling.profile import CpuProfile, Kind, MemoryProfile
from axon.profiling.profiler import Profiler
from axon.profiling.responder import Recordable, Responder, recorded, this_process
from axon.runtime.clock import SystemClock
from axon.runtime.tasks import end
from tests.journeys.server import wait_until
from tests.profiling.builders import memory_profile


def engine(name: str, error: Exception | None = None) -> Recordable:
    async def record(kind: Kind, seconds: float) -> bytes:
        if error is not None:
            raise error
        return pack(memory_profile())

    return Recordable(Subject(name=name, role="engine", pid=9, model="echo"), record)


@asynccontextmanager
async def answered_by(live: MemoryLive, *responders: Responder) -> AsyncIterator[Profiles]:
    tasks = [asyncio.create_task(each.run()) for each in responders]
    try:
        await asyncio.sleep(0)  # now they listen
        assert await live.wakeups.counts([ORDERS]) == [len(responders)]
        yield Profiles(live, SystemClock(), "gateway-1")
    finally:
        await end(*tasks)


@pytest.fixture
def live() -> MemoryLive:
    return open_memory_live(SystemClock(), retention_s=60.0)


async def test_every_process_says_what_can_be_profiled_there(live: MemoryLive) -> None:
    gateway = Responder(live, this_process("gateway-1", "gateway", Profiler()))
    worker = Responder(live, this_process("w", "worker", Profiler()), lambda: [engine("w/echo")])
    async with answered_by(live, gateway, worker) as profiles:
        found = await profiles.subjects()
    assert [(each.name, each.role) for each in found] == [
        ("w/echo", "engine"),
        ("gateway-1", "gateway"),
        ("w", "worker"),
    ]


async def test_a_profile_comes_back_under_the_name_of_its_process_and_is_not_kept(live: MemoryLive) -> None:
    own = this_process("w", "worker", Profiler())
    async with answered_by(live, Responder(live, own, lambda: [engine("w/echo")])) as profiles:
        of_engine = await profiles.record("w/echo", Kind.MEMORY, 0.1)
        of_process = await profiles.record("w", Kind.CPU, 0.1)
    assert isinstance(of_engine, MemoryProfile)
    assert isinstance(of_process, CpuProfile)
    assert (of_engine.process, of_process.process) == ("w/echo", "w")


async def test_a_process_that_is_profiled_refuses_a_second_one(live: MemoryLive) -> None:
    profiler = Profiler()
    first = asyncio.create_task(recorded(profiler, Kind.CPU, 60.0))
    await asyncio.sleep(0)
    assert profiler.is_on
    async with answered_by(live, Responder(live, this_process("w", "worker", profiler))) as profiles:
        with pytest.raises(AlreadyProfiled):
            await profiles.record("w", Kind.MEMORY, 0.1)
    await end(first)  # which ends the recording too


async def test_a_profile_that_nobody_waits_for_is_ended(live: MemoryLive) -> None:
    recorder = Profiler()
    async with answered_by(live, Responder(live, this_process("w", "worker", recorder))) as profiles:
        asked = asyncio.create_task(profiles.record("w", Kind.MEMORY, 60.0))
        await asyncio.to_thread(wait_until, lambda: recorder.is_on, "it records")
        await end(asked)
        await asyncio.to_thread(wait_until, lambda: not recorder.is_on, "it records no longer", 20.0)


async def test_a_process_with_too_many_orders_refuses_more(live: MemoryLive) -> None:
    async def record(kind: Kind, seconds: float) -> bytes:
        await asyncio.sleep(60.0)
        raise AssertionError

    slow = Recordable(Subject(name="w", role="worker", pid=1), record)
    async with answered_by(live, Responder(live, slow)) as profiles:
        asked = [asyncio.create_task(profiles.record("w", Kind.CPU, 60.0)) for _ in range(16)]
        await asyncio.sleep(0.1)
        with pytest.raises(AlreadyProfiled):
            await profiles.record("w", Kind.CPU, 0.1)
        await end(*asked)


async def test_errors_of_the_process_come_back_as_they_were(live: MemoryLive) -> None:
    own = this_process("w", "worker", Profiler())
    dead = engine("w/echo", EngineDied("Gone."))
    async with answered_by(live, Responder(live, own, lambda: [dead])) as profiles:
        with pytest.raises(EngineDied, match="Gone"):
            await profiles.record("w/echo", Kind.STEPS, 0.1)
        with pytest.raises(InvalidInput, match="makes no steps"):
            await profiles.record("w", Kind.STEPS, 0.1)


async def test_nobody_of_the_name_is_not_found(live: MemoryLive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_BEGIN_S", 0.05)
    async with answered_by(live, Responder(live, this_process("w", "worker", Profiler()))) as profiles:
        with pytest.raises(NotFound) as missing:
            await profiles.record("x", Kind.CPU, 0.1)
    assert missing.value.code == "process_not_found"


SUBJECTS = (
    Subject(name="gw-1", role="gateway", pid=1),
    Subject(name="w-10", role="worker", pid=2),
    Subject(name="w-1", role="worker", pid=3),
    Subject(name="w-1/llama", role="engine", pid=4, model="llama"),
)


@pytest.mark.parametrize(
    ("word", "name"),
    [("gateway", "gw-1"), ("gw", "gw-1"), ("w-1", "w-1"), ("engine", "w-1/llama"), ("llama", "w-1/llama")],
)
def test_a_word_stands_for_the_one_process_that_it_fits(word: str, name: str) -> None:
    assert chosen(SUBJECTS, word).name == name


@pytest.mark.parametrize("subjects", [SUBJECTS, ()])
def test_a_word_that_fits_none_is_not_found(subjects: Sequence[Subject]) -> None:
    with pytest.raises(NotFound) as missing:
        chosen(subjects, "x")
    assert (missing.value.code, missing.value.param) == ("process_not_found", "process")


def test_a_word_that_fits_several_is_refused_with_their_names() -> None:
    with pytest.raises(InvalidInput, match=r"w-10 \(worker\), w-1 \(worker\)"):
        chosen(SUBJECTS, "worker")
