"""Versions that a deployment gets are loaded while the server runs; one that cannot be loaded disturbs nobody."""

import asyncio
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from axon.bootstrap import registered_workers
from axon.bootstrap.registered_workers import RegisteredWorkers
from axon.errors import FetchFailed
from axon.runtime.clock import FakeClock
from axon.runtime.lifecycle import Lifecycle

KEY = ("small", "small@v1")


class Versions:
    """The registry, as it is set by hand."""

    def __init__(self) -> None:
        self.revision = 1
        self.keys = [KEY]
        self.fails = True
        self.num_asked = 0

    def wanted(self) -> list[tuple[str, str]]:
        return self.keys

    def has(self, key: tuple[str, str]) -> bool:
        return key in self.keys

    def following(self, key: tuple[str, str]) -> Any:
        settings = SimpleNamespace(engine=SimpleNamespace(device="cuda"))
        version = SimpleNamespace(label="v1")
        return SimpleNamespace(deployed=SimpleNamespace(model=self.model, settings=settings, version=version))

    async def model(self, on_progress: Any, stack: AsyncExitStack) -> object:
        self.num_asked += 1
        if self.fails:
            raise FetchFailed("There is no /models/small on this machine.")
        return object()

    async def run(self) -> None:
        await asyncio.Event().wait()


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, stack: AsyncExitStack) -> None:
        self.versions, self.clock, self.running = Versions(), FakeClock(), 0
        settings = SimpleNamespace(lifecycle=SimpleNamespace(drain_s=1.0))
        process: Any = SimpleNamespace(clock=self.clock, lifecycle=Lifecycle(), settings=settings)
        versions, services = self.versions, SimpleNamespace()
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


async def test_a_version_that_comes_back_is_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        world = World(monkeypatch, stack)
        world.versions.fails = False
        for keys, running in (([KEY], 1), ([], 0), ([KEY], 1), ([], 0)):
            world.versions.keys = keys
            await world.looks(tasks)
            assert world.running == running
