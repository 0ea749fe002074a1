"""The spare engine process: started and imported ahead of time, so that an engine starts at once. It loads no model.

One spare serves all models of a worker process. When an engine takes it, another one is started once that engine is
ready, so that the two do not compete for the processor. It reads that engine's tokenizer for grammars, because an
engine that takes over has no idle moment for it.
"""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import structlog

from axon.engine.config import EngineConfig
from axon.errors import EngineDied
from axon.runtime.tasks import race
from axon.worker.child.process import Launched, launch

_SETTLE_S = 1.0
"""Seconds from an engine that is ready to the start of the next spare: its first tokens go before."""
_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 1.0, 60.0
"""Exponential backoff after a spare that died."""

_logger = structlog.get_logger("axon.worker")


class SpareEngine:
    """Holds at most one spare process."""

    def __init__(self, has_room: Callable[[], bool], *, settle_s: float = _SETTLE_S) -> None:
        """``has_room``: whether the machine has memory for a spare now."""
        self._has_room = has_room
        self._settle_s = settle_s
        self._config: EngineConfig | None = None
        self._model_dir: Path | None = None
        """The model of the last engine that was started; None before the first."""
        self._spare: Launched | None = None
        self._wanted = asyncio.Event()
        self._taken = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """The process id of the spare; None while there is none."""
        return self._spare.process.pid if self._spare and self._spare.is_alive else None

    async def prepare(self, config: EngineConfig) -> None:
        """Starts the first spare, for an engine with this config."""
        self._config = config
        with contextlib.suppress(EngineDied):  # the engine's own start reports it
            await self._start()

    async def take(self, config: EngineConfig, model_dir: Path | None) -> Launched:
        """Returns the spare if there is one, else a new process, for an engine of this model; the caller closes it."""
        self._config, self._model_dir = config, model_dir
        spare, self._spare = self._spare, None
        self._taken.set()
        self._wanted.clear()  # the next one is started when this engine is ready
        if spare is not None and spare.is_alive:
            return spare
        if spare is not None:
            await spare.aclose()
        return await launch()

    def engine_is_ready(self) -> None:
        """Has another spare started soon, if there is none."""
        self._wanted.set()

    async def run(self) -> None:
        """Starts a spare when one is wanted, and another one when it dies."""
        backoff_s = _FIRST_BACKOFF_S
        while True:
            if self._spare is None:
                await self._wanted.wait()
                self._wanted.clear()
                await asyncio.sleep(self._settle_s)
                with contextlib.suppress(EngineDied):
                    await self._start()
            elif await self._dies(self._spare):
                _logger.warning("spare_engine.died", pid=self._spare.process.pid, next=f"replaced in {backoff_s:g} s")
                await self._drop()
                await asyncio.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, _LONGEST_BACKOFF_S)
                self._wanted.set()
            else:
                backoff_s = _FIRST_BACKOFF_S

    async def aclose(self) -> None:
        """Ends the spare."""
        await self._drop()

    async def _start(self) -> None:
        if self._spare is not None or self._config is None:
            return
        if not self._has_room():
            _logger.info("spare_engine.none", cause="little memory is free")
            return
        spare = await launch()
        self._taken.clear()
        self._spare = spare
        spare.warm(self._config, self._model_dir)

    async def _dies(self, spare: Launched) -> bool:
        """Waits until the spare is taken or dead; returns whether it died."""
        await race(asyncio.create_task(spare.process.wait()), asyncio.create_task(self._taken.wait()))
        return self._spare is spare

    async def _drop(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            await spare.aclose()
