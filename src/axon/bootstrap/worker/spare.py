"""Opens the spare engine process of a worker process, where the settings and the memory allow one."""

from contextlib import AsyncExitStack
from dataclasses import replace

from axon.bootstrap.models.memory import available_bytes
from axon.bootstrap.models.model import Model
from axon.settings import Settings
from axon.worker.child.process import EngineProcess
from axon.worker.child.spare import SpareEngine

_LEAST_FREE_BYTES = 1 << 30


async def open_spare(settings: Settings, stack: AsyncExitStack) -> SpareEngine | None:
    """Starts the spare, which imports its packages while the model is prepared; the stack closes it."""
    if not settings.worker.spare_engine or settings.engine.kind != "axon":
        return None
    spare = SpareEngine(_has_room)
    stack.push_async_callback(spare.aclose)
    await spare.prepare(settings.engine)
    return spare


def make_engine(settings: Settings, model: Model, spare: SpareEngine | None) -> EngineProcess:
    """A process for the settings' engine, out of the spare if there is one; an echo engine is quick by itself, and
    vLLM's process has another interpreter."""
    config = replace(settings.engine, draft_model=str(model.draft or ""))
    if spare is None or config.kind != "axon":
        return EngineProcess(config, model.folder)
    return EngineProcess(config, model.folder, take=spare.take, on_ready=spare.engine_is_ready)


def _has_room() -> bool:
    try:
        return available_bytes() >= _LEAST_FREE_BYTES
    except OSError:
        return False  # not Linux: nobody says how much is free
