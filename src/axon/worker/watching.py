"""What no token tells: deadlines, cancelled jobs before their first token, deliveries whose owner may be gone."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Protocol

from axon.domain.turn import TurnState
from axon.errors import AxonError
from axon.ports.live import TokenLog
from axon.ports.queue import Delivery
from axon.runtime.clock import Clock
from axon.worker.running import Running

_TICK_S = 0.5


class Watched(Protocol):
    """The worker, as the watching needs it."""

    @property
    def running(self) -> Mapping[str, Running]: ...

    def end(self, running: Running, state: TurnState, code: str = "", message: str = "") -> None: ...

    def watch_engine(self) -> None: ...

    async def relieve(self) -> None: ...

    async def start(self, delivery: Delivery) -> None: ...


class Watching:
    """Looks at everything, twice a second. Keeps the deliveries that wait to be looked at again."""

    def __init__(self, *, worker: Watched, log: TokenLog, clock: Clock) -> None:
        self._worker, self._log, self._clock = worker, log, clock
        self._parked: dict[int, Delivery] = {}

    def park(self, delivery: Delivery) -> None:
        """Keeps a delivery, neither acked nor given back, until it is clear what becomes of its job."""
        self._parked[delivery.tag] = delivery

    def take_parked(self) -> list[Delivery]:
        """What is parked, which is then no longer kept here."""
        parked, self._parked = self._parked, {}
        return list(parked.values())

    def drop(self, delivery: Delivery) -> None:
        """Keeps it no longer."""
        self._parked.pop(delivery.tag, None)

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            await asyncio.sleep(_TICK_S)
            for running in list(self._worker.running.values()):
                with contextlib.suppress(AxonError):
                    await self._look_at(running)
            self._worker.watch_engine()
            await self._worker.relieve()
            for delivery in self.take_parked():
                await self._worker.start(delivery)

    async def _look_at(self, running: Running) -> None:
        if running.terminal is not None and not running.is_held:
            return
        if running.job.deadline <= self._clock.now():
            self._worker.end(running, TurnState.EXPIRED)
            return
        view = await self._log.read(running.job.id, after=running.sent)
        if view is not None and view.cancelled:
            self._worker.end(running, TurnState.CANCELLED)
