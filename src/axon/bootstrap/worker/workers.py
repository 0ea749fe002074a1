"""The workers inside ``axon serve``: one for each model of the settings and each version that the registry runs, each
with an engine process of its own."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass

import structlog

from axon.bootstrap.models.memory import require_memory
from axon.bootstrap.models.model import Model, OnProgress, Text, prepare_model
from axon.bootstrap.process import Part, Process
from axon.bootstrap.services import Services
from axon.bootstrap.worker.deployed import open_all_versions
from axon.bootstrap.worker.registered_workers import RegisteredWorkers
from axon.bootstrap.worker.worker import Working, open_worker
from axon.domain.model.served_version import ServedVersion
from axon.runtime.tasks import end
from axon.settings import Settings
from axon.worker.child.spare import SpareEngine
from axon.worker.worker import Worker

_logger = structlog.get_logger("axon.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Workers whose engines are running and which take no jobs yet."""

    own: tuple[Working, ...]
    """Those of the settings' models, in the order of the settings."""
    registered: RegisteredWorkers | None
    parts: tuple[Part, ...]

    @property
    def workings(self) -> tuple[Working, ...]:
        """Those that run now."""
        return (*self.own, *(self.registered.workings if self.registered else ()))

    @property
    def served(self) -> tuple[ServedVersion, ...]:
        """What those of the settings' models serve, in the order of the settings."""
        return tuple(each.deployment for each in self.own)

    @property
    def engine_pids(self) -> tuple[int, ...]:
        return tuple(pid for each in self.workings if (pid := each.worker.engine_pid) is not None)

    @property
    def engines(self) -> list[tuple[str, Worker]]:
        """The workers, each with the name of the model that its engine runs."""
        return [(each.deployment.name, each.worker) for each in self.workings]

    @property
    def num_jobs(self) -> int:
        """Jobs that they hold."""
        return sum(len(each.worker.jobs) for each in self.workings)

    async def drain(self, timeout_s: float, *, empty_queue: bool, hand_over: bool) -> None:
        """Drains all of them at once."""
        await asyncio.gather(
            *(each.worker.drain(timeout_s, empty_queue=empty_queue, hand_over=hand_over) for each in self.workings)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The models whose files are here, to be loaded."""

    models: tuple[tuple[Settings, Model], ...]
    """Those of the settings, each with the process's settings and its own in their place."""
    registered: RegisteredWorkers | None
    """The versions of the registry; None where they are left to the workers of a fleet."""

    @property
    def texts(self) -> list[Text]:
        """The texts of the settings' models; a gateway loads those of registered versions when they are asked for."""
        return [model.text for _, model in self.models]

    @property
    def stage(self) -> str:
        """The stage of the start in words."""
        num = len(self.models) + (len(self.registered.prepared) if self.registered else 0)
        return "Loading the model" if num == 1 else f"Loading {num} models"


async def prepare_models(
    process: Process, services: Services, on_progress: OnProgress, stack: AsyncExitStack
) -> Prepared:
    """Finds each model of the settings, then each version that the registry's deployments run, and fetches or converts
    what has to be, once. Raises ``Misconfigured`` if they do not fit into memory together.

    With shared services the registry's deployments are left to the workers of a fleet.
    """
    models = tuple(
        [(each, await asyncio.to_thread(prepare_model, each, on_progress)) for each in process.settings.each_model()]
    )
    registered, all_of_them = None, list(models)
    if services.queue_forgets:
        versions = await open_all_versions(process, services)
        registered = RegisteredWorkers(process, services, versions, stack)
        all_of_them += await registered.prepare(on_progress)
        for name in {each.model_name for each, _ in models} & set(versions.deployments):
            hint = "the registered deployment answers; name the model of the settings otherwise"
            _logger.warning("serve.name_taken", model=name, hint=hint)
    require_memory([settings for settings, _ in all_of_them], [model for _, model in all_of_them])
    return Prepared(models=models, registered=registered)


async def open_workers(
    process: Process,
    services: Services,
    prepared: Prepared,
    name: str,
    stack: AsyncExitStack,
    spare: SpareEngine | None = None,
) -> Workers:
    """Starts an engine for each model, all at once; the stack closes them. Raises the first error of any.

    All of them share one spare engine process.
    """
    registered = prepared.registered
    opening = [
        asyncio.ensure_future(open_worker(process, settings, services, model, name, stack, spare=spare))
        for settings, model in prepared.models
    ]
    others = [asyncio.ensure_future(registered.open(name, spare))] if registered else []
    try:
        await asyncio.gather(*opening, *others)
    finally:
        await end(*opening, *others)
    own = tuple(task.result() for task in opening)
    parts = [part for each in own for part in each.parts] + ([spare.run] if spare else [])
    return Workers(
        own=own,
        registered=registered,
        parts=(*parts, *((registered.run,) if registered else ()), *services.background),
    )
