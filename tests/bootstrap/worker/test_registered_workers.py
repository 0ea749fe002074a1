"""Versions that a deployment gets are loaded while the server runs; one that cannot be loaded disturbs nobody."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from axon.adapters.live.memory.cache import MemoryCache
from axon.bootstrap.worker import registered_workers
from axon.bootstrap.worker.registered_workers import RegisteredWorkers
from axon.errors import FetchFailed, Misconfigured
from axon.registry.load_problems import LoadProblems
from axon.runtime.clock import FakeClock
from axon.runtime.lifecycle import Lifecycle

KEY = ("small", "small@v1")


class Versions:
    """The registry, as it is set by hand."""

    def __init__(self) -> None:
        self.revision = 1
        self.keys = [KEY]
        self.fails = True
        self.failing: set[tuple[str, str]] = set()
        """Versions that cannot be had whatever ``fails`` says."""
        self.num_asked = 0

    def wanted(self) -> list[tuple[str, str]]:
        return self.keys

    def has(self, key: tuple[str, str]) -> bool:
        return key in self.keys

    def following(self, key: tuple[str, str]) -> Any:
        settings = SimpleNamespace(engine=SimpleNamespace(device="cuda"))
        version = SimpleNamespace(label="v1")
        model = partial(self.model, key)
        return SimpleNamespace(deployed=SimpleNamespace(model=model, settings=settings, version=version))

    async def model(self, key: tuple[str, str], on_progress: Any, stack: AsyncExitStack) -> object:
        self.num_asked += 1
        if self.fails or key in self.failing:
            raise FetchFailed("There is no /models/small on this machine.")
        return object()

    async def run(self) -> None:
        await asyncio.Event().wait()


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, stack: AsyncExitStack) -> None:
        self.versions, self.clock, self.running = Versions(), FakeClock(), 0
        settings = SimpleNamespace(lifecycle=SimpleNamespace(drain_s=1.0))
        process: Any = SimpleNamespace(clock=self.clock, lifecycle=Lifecycle(), settings=settings)
        self.problems = LoadProblems(MemoryCache(self.clock))
        services = SimpleNamespace(live=SimpleNamespace(cache=self.problems._cache))
        versions = self.versions
        self.workers = RegisteredWorkers(process, services, versions, stack)  # type: ignore[arg-type]
        monkeypatch.setattr(registered_workers, "open_worker", self._open)

    async def _open(self, *given: Any) -> Any:
        async def run() -> None:
            self.running += 1
            try:
                await asyncio.Event().wait()
            finally:
                self.running -= 1

        async def drain(timeout_s: float, *, hand_over: bool) -> bool:
            return True

        return SimpleNamespace(worker=SimpleNamespace(drain=drain), parts=(run,))

    async def looks(self, tasks: asyncio.TaskGroup) -> None:
        await self.workers._look(tasks)
        for _ in range(20):
            await asyncio.sleep(0)


async def test_a_version_that_cannot_be_loaded_is_tried_again_later_or_when_the_registry_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        world = World(monkeypatch, stack)
        with capture_logs() as logs:
            await world.looks(tasks)
            await world.looks(tasks)
        assert (world.versions.num_asked, world.workers.workings) == (1, ())
        assert [each["error"] for each in logs if each["event"] == "serve.version_not_loaded"] == [
            "There is no /models/small on this machine."
        ]
        world.clock.advance(31.0)
        await world.looks(tasks)
        assert world.versions.num_asked == 2
        world.versions.revision, world.versions.fails = 2, False
        await world.looks(tasks)
        assert (len(world.workers.workings), world.running) == (1, 1)
        world.versions.keys = []
        await world.looks(tasks)
        assert (world.workers.workings, world.running) == ((), 0)


async def test_at_the_start_a_version_that_cannot_be_had_leaves_the_others_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = ("large", "large@v1")
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        world = World(monkeypatch, stack)
        world.versions.keys, world.versions.fails, world.versions.failing = [KEY, other], False, {KEY}
        with capture_logs() as logs:
            prepared = await world.workers.prepare(lambda stage, part: None)
            await world.workers.open("w")
        assert (len(prepared), len(world.workers.workings)) == (1, 1)
        (told,) = [each for each in logs if each["event"] == "serve.version_not_loaded"]
        assert (told["deployment"], told["version"], told["log_level"]) == (*KEY, "error")
        assert "no /models/small" in await world.problems.of(*KEY)
        assert await world.problems.of(*other) == ""
        await world.looks(tasks)
        assert world.versions.num_asked == 2, "it is tried again after a while, not at once"
        world.clock.advance(31.0)
        world.versions.failing = set()
        await world.looks(tasks)
        assert len(world.workers.workings) == 2
        assert await world.problems.of(*KEY) == "", "what is loaded has no problem"
        world.versions.keys = []
        await world.looks(tasks)


async def test_at_the_start_an_engine_that_does_not_come_up_leaves_the_others_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with AsyncExitStack() as stack:
        world = World(monkeypatch, stack)
        world.versions.keys, world.versions.fails = [KEY, ("large", "large@v1")], False
        opened = world._open

        async def open_all_but_the_first(*given: Any) -> Any:
            first = world.workers.prepared.get(KEY)
            if first is not None and given[5] is first.stack:
                raise Misconfigured("Its engine died.")
            return await opened(*given)

        monkeypatch.setattr(registered_workers, "open_worker", open_all_but_the_first)
        await world.workers.prepare(lambda stage, part: None)
        await world.workers.open("w")
        assert list(world.workers.prepared) == [("large", "large@v1")]
        assert await world.problems.of(*KEY) == "Its engine died."


async def test_a_version_that_comes_back_is_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        world = World(monkeypatch, stack)
        world.versions.fails = False
        for keys, running in (([KEY], 1), ([], 0), ([KEY], 1), ([], 0)):
            world.versions.keys = keys
            await world.looks(tasks)
            assert world.running == running
