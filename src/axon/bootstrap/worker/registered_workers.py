"""The workers of registered versions inside ``axon serve``. They follow the registry: a version that a deployment gets
is loaded while the server runs, and one that has left is unloaded. Knows no gateway."""

import asyncio
import contextlib
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import structlog

from axon.bootstrap.models.memory import require_room
from axon.bootstrap.models.model import Model, OnProgress
from axon.bootstrap.process import Process
from axon.bootstrap.services import Services
from axon.bootstrap.worker.deployed import AllVersions, Following, Key
from axon.bootstrap.worker.worker import Working, open_worker
from axon.errors import AxonError
from axon.registry.load_problems import LoadProblems
from axon.runtime.tasks import end
from axon.settings import Settings
from axon.worker.child.spare import SpareEngine

_LOOK_S = 0.25
_RETRY_S = 30.0
"""Seconds after which a version that could not be loaded is tried again; a change of the registry comes before."""
_PROBLEM_S = 10 * _RETRY_S
"""Seconds for which a version counts as one that could not be loaded: the next try may take long."""

_logger = structlog.get_logger("axon.worker")


@dataclass(eq=False, slots=True, kw_only=True)
class _Version:
    """A version whose files are here."""

    following: Following
    model: Model
    stack: AsyncExitStack
    """Closes its worker and lets its files go."""
    working: Working | None = None
    tasks: tuple[asyncio.Task[object], ...] = ()

    @property
    def settings(self) -> Settings:
        return self.following.deployed.settings


class RegisteredWorkers:
    """``prepare`` and ``open`` those of the start, then ``run``; the ``stack`` closes what is left."""

    def __init__(self, process: Process, services: Services, versions: AllVersions, stack: AsyncExitStack) -> None:
        self._process, self._services, self._versions = process, services, versions
        self._problems = LoadProblems(services.live.cache)
        stack.push_async_callback(self._aclose)
        self._name = ""
        self._spare: SpareEngine | None = None
        self.prepared: dict[Key, _Version] = {}
        self._leaving: set[Key] = set()
        self._failed: dict[Key, tuple[int, float]] = {}
        """Versions that could not be loaded: the registry's revision then, and the monotonic time of the next try."""

    @property
    def workings(self) -> tuple[Working, ...]:
        """Those that run now."""
        return tuple(each.working for each in self.prepared.values() if each.working is not None)

    async def prepare(self, on_progress: OnProgress) -> Sequence[tuple[Settings, Model]]:
        """Fetches or converts what has to be, for every version that is served from the start on. One that cannot be
        had is logged and tried again later; the others are served."""
        for key in self._versions.wanted():
            try:
                await self._prepare(key, on_progress)
            except (AxonError, OSError) as error:
                await self._not_loaded(key, error)
        return [(each.settings, each.model) for each in self.prepared.values()]

    async def open(self, name: str, spare: SpareEngine | None = None) -> None:
        """Starts the engines of what is prepared, all at once; one that does not start is tried again later. ``name``
        is the process's own among workers; ``spare`` is the process's spare engine."""
        self._name, self._spare = name, spare
        await asyncio.gather(*(self._open_first(key, each) for key, each in list(self.prepared.items())))

    async def _open_first(self, key: Key, each: _Version) -> None:
        try:
            await self._open(each)
        except (AxonError, OSError) as error:
            await self._not_loaded(key, error)

    async def run(self) -> None:
        """Runs the workers and follows the registry, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._versions.run())
            for each in self.prepared.values():
                _start(each, tasks)
            while True:
                await self._look(tasks)
                await asyncio.sleep(_LOOK_S)

    async def _look(self, tasks: asyncio.TaskGroup) -> None:
        if self._process.lifecycle.draining:
            return
        for key in [key for key in self.prepared if not self._versions.has(key) and key not in self._leaving]:
            self._leaving.add(key)
            tasks.create_task(self._leave(key))
        for key in self._versions.wanted():
            if key not in self.prepared and self._is_due(key):
                await self._join(key, tasks)

    def _is_due(self, key: Key) -> bool:
        revision, due = self._failed.get(key, (-1, 0.0))
        return revision != self._versions.revision or self._process.clock.monotonic() >= due

    async def _join(self, key: Key, tasks: asyncio.TaskGroup) -> None:
        """Loads a version beside those that run. What cannot be loaded is logged, and tried again."""
        deployment, version = key
        _logger.info("serve.version_loading", deployment=deployment, version=version)
        try:
            each = await self._prepare(key, lambda stage, part: None)
            require_room(each.settings, each.model)
            await self._open(each)
        except (AxonError, OSError) as error:
            await self._not_loaded(key, error)
            return
        if self._failed.pop(key, None):
            with contextlib.suppress(AxonError):
                await self._problems.drop(deployment, version)
        _start(each, tasks)
        _logger.info("serve.version_loaded", deployment=deployment, version=version)

    async def _not_loaded(self, key: Key, error: AxonError | OSError) -> None:
        """Lets its files go, says why it is not served, and when it is tried again."""
        if key in self.prepared:
            await self.prepared.pop(key).stack.aclose()
        self._failed[key] = self._versions.revision, self._process.clock.monotonic() + _RETRY_S
        deployment, version = key
        _logger.error(
            "serve.version_not_loaded", deployment=deployment, version=version, error=str(error), retry_s=_RETRY_S
        )
        with contextlib.suppress(AxonError):  # then the log alone has it
            await self._problems.put(deployment, version, str(error), ttl_s=_PROBLEM_S)

    async def _leave(self, key: Key) -> None:
        """Ends what runs, closes the engine and lets the files go."""
        each = self.prepared[key]
        if each.working is not None:
            await each.working.worker.drain(self._process.settings.lifecycle.drain_s, hand_over=False)
        await end(*each.tasks)
        await each.stack.aclose()
        del self.prepared[key]
        self._leaving.discard(key)
        _logger.info("serve.version_unloaded", deployment=key[0], version=key[1])

    async def _prepare(self, key: Key, on_progress: OnProgress) -> _Version:
        following = self._versions.following(key)
        async with AsyncExitStack() as opening:
            model = await following.deployed.model(on_progress, opening)
            own = opening.pop_all()
        made = self.prepared[key] = _Version(following=following, model=model, stack=own)
        return made

    async def _aclose(self) -> None:
        for each in self.prepared.values():
            await each.stack.aclose()

    async def _open(self, each: _Version) -> None:
        # Workers of one deployment need names of their own.
        name = f"{self._name}.{each.following.deployed.version.label}"
        process, services = self._process, self._services
        each.working = await open_worker(
            process, each.settings, services, each.model, name, each.stack, each.following, self._spare
        )


def _start(each: _Version, tasks: asyncio.TaskGroup) -> None:
    assert each.working is not None
    each.tasks = tuple([tasks.create_task(part()) for part in each.working.parts])
