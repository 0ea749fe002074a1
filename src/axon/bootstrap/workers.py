"""The workers inside ``axon serve``: one for each model of the settings, each with an engine process of its own."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from axon.bootstrap.memory import require_memory
from axon.bootstrap.model import Model, OnProgress, prepare_model
from axon.bootstrap.process import Part, Process
from axon.bootstrap.services import Services
from axon.bootstrap.worker import Working, open_worker
from axon.domain.served_version import ServedVersion
from axon.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Workers whose engines are running and which take no jobs yet."""

    workings: tuple[Working, ...]
    parts: tuple[Part, ...]

    @property
    def served(self) -> tuple[ServedVersion, ...]:
        """What they serve, in the order of the settings."""
        return tuple(each.deployment for each in self.workings)

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


async def prepare_models(settings: Settings, on_progress: OnProgress) -> Sequence[Model]:
    """Finds each model of the settings, converting what has to be converted once; raises ``Misconfigured`` if they do
    not fit into memory together."""
    each_model = settings.each_model()
    models = [await asyncio.to_thread(prepare_model, each, on_progress) for each in each_model]
    require_memory(each_model, models)
    return models


def loading(models: Sequence[Model]) -> str:
    """The stage of the start in words."""
    return "Loading the model" if len(models) == 1 else f"Loading {len(models)} models"


async def open_workers(
    process: Process, services: Services, models: Sequence[Model], name: str, stack: AsyncExitStack
) -> Workers:
    """Starts an engine for each model, all at once; the stack closes them. Raises the first error of any."""
    opening = [
        asyncio.ensure_future(open_worker(process, settings, services, model, name, stack))
        for settings, model in zip(process.settings.each_model(), models, strict=True)
    ]
    try:
        workings = tuple(await asyncio.gather(*opening))
    finally:
        for each in opening:
            each.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
    parts = [part for each in workings for part in each.parts]
    return Workers(workings=workings, parts=(*parts, *services.background))
