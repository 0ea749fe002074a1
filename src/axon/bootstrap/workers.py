"""The workers inside ``axon serve``: one for each model of the settings and each version that the registry runs, each
with an engine process of its own."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from axon.bootstrap.deployed import Following, open_all_following
from axon.bootstrap.memory import require_memory
from axon.bootstrap.model import Model, OnProgress, Text, prepare_model
from axon.bootstrap.process import Part, Process
from axon.bootstrap.services import Services
from axon.bootstrap.worker import Working, open_worker
from axon.domain.served_version import ServedVersion
from axon.settings import Settings
from axon.worker.child.spare import SpareEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Workers whose engines are running and which take no jobs yet."""

    workings: tuple[Working, ...]
    served: tuple[ServedVersion, ...]
    """What those of the settings' models serve, in the order of the settings."""
    parts: tuple[Part, ...]

    @property
    def engine_pids(self) -> tuple[int, ...]:
        return tuple(pid for each in self.workings if (pid := each.worker.engine_pid) is not None)

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
    """A model whose files are here, to be loaded."""

    settings: Settings
    """The process's settings, with those of the model in their place."""
    model: Model
    following: Following | None = None
    """What the registry says of it; None for a model of the settings."""


async def prepare_models(
    process: Process, services: Services, on_progress: OnProgress, stack: AsyncExitStack
) -> Sequence[Prepared]:
    """Finds each model of the settings, then each version that the registry's deployments run, and fetches or converts
    what has to be, once. Raises ``Misconfigured`` if they do not fit into memory together.

    With shared services the registry's deployments are left to the workers of a fleet.
    """
    found = [
        Prepared(settings=each, model=await asyncio.to_thread(prepare_model, each, on_progress))
        for each in process.settings.each_model()
    ]
    if services.queue_forgets:
        for following in await open_all_following(process, services):
            model = await following.deployed.model(on_progress, stack)
            found.append(Prepared(settings=following.deployed.settings, model=model, following=following))
    require_memory([each.settings for each in found], [each.model for each in found])
    return found


def texts_of(prepared: Sequence[Prepared]) -> list[Text]:
    """The texts of the settings' models; a gateway loads those of registered versions when they are asked for."""
    return [each.model.text for each in prepared if each.following is None]


def loading(prepared: Sequence[Prepared]) -> str:
    """The stage of the start in words."""
    return "Loading the model" if len(prepared) == 1 else f"Loading {len(prepared)} models"


async def open_workers(
    process: Process,
    services: Services,
    prepared: Sequence[Prepared],
    name: str,
    stack: AsyncExitStack,
    spare: SpareEngine | None = None,
) -> Workers:
    """Starts an engine for each model, all at once; the stack closes them. Raises the first error of any.

    All of them share one spare engine process.
    """

    def opened(each: Prepared) -> Coroutine[Any, Any, Working]:
        # Workers of one deployment need names of their own.
        own = f"{name}.{each.following.deployed.version.label}" if each.following else name
        return open_worker(process, each.settings, services, each.model, own, stack, each.following, spare)

    opening = [asyncio.ensure_future(opened(each)) for each in prepared]
    try:
        workings = tuple(await asyncio.gather(*opening))
    finally:
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
    of_settings = tuple(
        working.deployment for each, working in zip(prepared, workings, strict=True) if each.following is None
    )
    parts = [part for each in workings for part in each.parts]
    parts += [spare.run] if spare else []
    return Workers(workings=workings, served=of_settings, parts=(*parts, *services.background))
