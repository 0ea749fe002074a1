"""What goes wrong between a process and a service: delays, lost calls, lost answers, a crash at any await."""

import asyncio
import inspect
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from axon.errors import DependencyDown
from tests.sim.history import History
from tests.sim.processes import Crash, Process


@dataclass(slots=True)
class Rates:
    """How often, per call."""

    delay: float = 0.3
    lost_call: float = 0.0
    lost_answer: float = 0.0
    crash: float = 0.0

    def heal(self) -> None:
        self.lost_call = self.lost_answer = self.crash = 0.0


class Way:
    """The way from one process to the services."""

    def __init__(
        self,
        process: Process,
        rates: Rates,
        rng: random.Random,
        on_crash: Callable[[Process], None],
        history: History,
    ) -> None:
        self.process = process
        self._history = history
        self._rates, self._rng, self._on_crash = rates, rng, on_crash

    async def call(
        self, method: Callable[..., Any], args: Any, kwargs: Any, on_lost: Callable[[], None] | None = None
    ) -> Any:
        await self._hop(self._rates.lost_call)
        self._history.acting = self.process
        result = await method(*args, **kwargs)
        try:
            await self._hop(self._rates.lost_answer)
        except DependencyDown:
            if on_lost is not None:
                on_lost()
            raise
        return result

    async def _hop(self, lost: float) -> None:
        rng, rates = self._rng, self._rates
        if rng.random() < rates.delay:
            await asyncio.sleep(rng.expovariate(1 / 0.004))
        await self.process.gate()
        if rates.crash and rng.random() < rates.crash:
            self._on_crash(self.process)
            raise Crash
        if lost and rng.random() < lost:
            raise DependencyDown("lost on the way")


class Through:
    """A port as one process reaches it: the same methods, over an unreliable way."""

    def __init__(self, target: Any, way: Way, on_lost: Callable[[], None] | None = None) -> None:
        self._target, self._way, self._on_lost = target, way, on_lost

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)
        if name == "listen":
            return self._listen
        if not inspect.iscoroutinefunction(method):
            return method

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._way.call(method, args, kwargs, self._on_lost)

        self.__dict__[name] = call
        return call

    @asynccontextmanager
    async def _listen(self, channel: str) -> AsyncIterator[Any]:
        async with self._target.listen(channel) as listener:
            yield _Ear(listener, self._way.process)


class _Ear:
    """A listener that hears nothing while its process stands still."""

    def __init__(self, listener: Any, process: Process) -> None:
        self._listener, self._process = listener, process

    async def next(self, timeout_s: float) -> bytes | None:
        payload: bytes | None = await self._listener.next(timeout_s)
        await self._process.gate()
        return payload
