"""What no token tells: deadlines, cancelled jobs before their first token, deliveries whose owner may be gone."""

import asyncio
import contextlib
import itertools
from collections.abc import Mapping
from typing import Protocol

from axon.dispatch.liveness import Liveness
from axon.domain.turn import TurnState
from axon.errors import AxonError
from axon.ports.live import STOPS, TokenLog, Wakeups
from axon.ports.queue import Delivery
from axon.runtime.clock import Clock
from axon.worker.job.running import Running

_TICK_S = 0.1
_LOOK_TICKS = 5
_HEAR_S = 60.0
_RETRY_S = 0.2


class Watched(Protocol):
    """The worker, as the watching needs it."""

    @property
    def running(self) -> Mapping[str, Running]: ...

    def end(self, running: Running, state: TurnState, code: str = "", message: str = "") -> None: ...

    def ask(self, running: Running) -> None: ...

    def watch_engine(self) -> None: ...

    async def relieve(self) -> None: ...

    async def start(self, delivery: Delivery) -> None: ...


class Watching:
    """Looks at everything, twice a second. Keeps the deliveries that wait to be looked at again.

    The owners of what others have are looked at more often: how soon a dead one's streams go on hangs on it.
    """

    def __init__(self, *, worker: Watched, log: TokenLog, wakeups: Wakeups, liveness: Liveness, clock: Clock) -> None:
        self._worker, self._log, self._wakeups = worker, log, wakeups
        self._liveness, self._clock = liveness, clock
        self._parked: dict[int, tuple[Delivery, str]] = {}

    def park(self, delivery: Delivery, owner: str = "") -> None:
        """Keeps a delivery, neither acked nor given back, until it is clear what becomes of its job."""
        self._parked[delivery.tag] = delivery, owner

    def take_parked(self) -> list[Delivery]:
        """What is parked, which is then no longer kept here."""
        parked, self._parked = self._parked, {}
        return [delivery for delivery, _ in parked.values()]

    def drop(self, delivery: Delivery) -> None:
        """Keeps it no longer."""
        self._parked.pop(delivery.tag, None)

    async def run(self) -> None:
        """Looks until cancelled."""
        for tick in itertools.count(1):
            await asyncio.sleep(_TICK_S)
            if tick % _LOOK_TICKS:
                with contextlib.suppress(AxonError):
                    await self._look_at_owners()
            else:
                await self._look()

    async def hear(self) -> None:
        """Looks at once at each job whose end is asked for, until cancelled; what it misses is seen by ``run``."""
        while True:
            try:
                async with self._wakeups.listen(STOPS) as listener:
                    while True:
                        job_id = await listener.next(_HEAR_S)
                        if job_id and (running := self._worker.running.get(job_id.decode(errors="replace"))):
                            self._worker.ask(running)
            except AxonError:
                await asyncio.sleep(_RETRY_S)

    async def _look(self) -> None:
        for running in list(self._worker.running.values()):
            with contextlib.suppress(AxonError):
                await self._look_at(running)
        self._worker.watch_engine()
        await self._worker.relieve()
        for delivery in self.take_parked():
            await self._worker.start(delivery)

    async def _look_at_owners(self) -> None:
        """Starts what waits for an owner that is gone, all at once: their readers wait."""
        owners = {owner for _, owner in self._parked.values() if owner}
        gone = {owner for owner in owners if not await self._liveness.alive(owner)}
        orphans = [delivery for delivery, owner in self._parked.values() if owner in gone]
        for delivery in orphans:
            self.drop(delivery)
        await asyncio.gather(*map(self._worker.start, orphans))

    async def _look_at(self, running: Running) -> None:
        if running.terminal is not None and not running.is_held:
            return
        if running.job.deadline <= self._clock.now():
            self._worker.end(running, TurnState.EXPIRED)
            return
        view = await self._log.read(running.job.id, after=running.sent)
        if view is not None and view.cancelled:
            self._worker.ask(running)
