"""What goes wrong around the registry: crashes, pauses, lost memory, cuts and replicas behind. It checks nothing."""

import asyncio
import random
from collections.abc import Callable, Sequence

from axon.adapters.live.memory.live import MemoryLive
from tests.sim.faults import Rates
from tests.sim.history import Violation
from tests.sim.loop import SimLoop
from tests.sim.processes import Process
from tests.sim.registry_nodes import (
    HORIZON_S,
    Node,
    PinStore,
    RegistryHistory,
)
from tests.sim.registry_store import SimRegistry


class Nemesis:
    """Lets things go wrong, one after the other, until the horizon."""

    def __init__(
        self,
        nodes: Sequence[Node],
        history: RegistryHistory,
        rng: random.Random,
        loop: SimLoop,
        *,
        live: MemoryLive,
        store: PinStore,
        registry: SimRegistry,
        rates: Rates,
        crash: Callable[[Process], None],
    ) -> None:
        self._nodes, self._history, self._rng, self._loop = nodes, history, rng, loop
        self._live, self._store, self._registry, self._rates = live, store, registry, rates
        self._crash_process = crash

    async def torment(self) -> None:
        """Draws faults until the horizon."""
        faults = [self._crash, self._pause, self._pause, self._flush, self._store_away, self._lag]
        faults += [self._cut, self._cut, self._stop_persisting]
        if self._rng.random() < 0.8:
            self._loop.call_later(self._rng.uniform(1.0, 8.0), self._cut, self._rng.uniform(60.0, 100.0))
        while self._loop.monotonic() < HORIZON_S:
            await asyncio.sleep(self._rng.expovariate(1 / 6.0))
            self._rng.choice(faults)()
            self.check()

    def check(self) -> None:
        """Raises ``Violation`` if a promise was broken."""
        if self._history.violation:
            raise Violation

    def heal(self) -> None:
        """Ends all faults."""
        self._history.note("healed")
        self._rates.heal()
        self._store.away = self._registry.away = False
        self._registry.lag = 0
        for node in self._nodes:
            node.process.go_on()
            for way in node.ways.values():
                way.is_cut = False

    def _crash(self) -> None:
        if (process := self._rng.choice(self._nodes).process).alive:
            self._crash_process(process)

    def _pause(self) -> None:
        self._stand_still(self._rng.choice(self._nodes).process, self._rng.choice([0.5, 3.0, 10.0]))

    def _stop_persisting(self) -> None:
        seconds = self._rng.uniform(2.0, 20.0)
        for node in self._nodes:
            if node.name.startswith("persister"):
                self._stand_still(node.process, seconds)

    def _stand_still(self, process: Process, seconds: float) -> None:
        if process.alive and not process.paused:
            self._history.note(f"{process.name} stands still for {seconds:.1f} s")
            process.pause()
            self._loop.call_later(seconds, process.go_on)

    def _flush(self) -> None:
        self._history.note("live forgets everything")
        self._live.lose_everything()

    def _store_away(self) -> None:
        self._history.note("the store goes away")
        self._store.away = self._registry.away = True
        self._loop.call_later(self._rng.uniform(0.5, 12.0), self._store_back)

    def _store_back(self) -> None:
        self._store.away = self._registry.away = False

    def _lag(self) -> None:
        self._history.note("the registry is read from a replica behind")
        self._registry.lag = self._rng.randint(1, 3)
        self._loop.call_later(self._rng.uniform(0.2, 3.0), setattr, self._registry, "lag", 0)

    def _cut(self, seconds: float = 0.0) -> None:
        """A gateway does not reach the store, at times for so long that a version can come and go."""
        way = self._rng.choice(self._nodes[:2]).ways.get("store")
        if way is not None and not way.is_cut:
            self._history.note(f"{way.process.name} is cut off from the store")
            way.is_cut = True
            seconds = seconds or self._rng.choice([4.0, 20.0, 60.0])
            self._loop.call_later(seconds, setattr, way, "is_cut", False)
            if self._rng.random() < 0.5:  # what it has accepted at the end is not in the store when it is back
                self._loop.call_later(seconds - 3.0, self._stop_persisting)
