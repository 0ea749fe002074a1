"""The processes of the registry's simulation, their ways to the services, and what the services keep of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from axon.control.drains import Drains
from axon.domain.registry.version import Version
from axon.domain.turn import Turn
from axon.errors import DependencyDown
from axon.registry.follower import FRESH_S, TRUST_S
from tests.sim.faults import Way
from tests.sim.history import History
from tests.sim.processes import Process
from tests.sim.services import SimStore

NAME, NUM_LANES, NUM_SLOTS = "sim", 2, 4
HORIZON_S, SETTLE_S = 110.0, 150.0
PIN_S = 10.0
"""Seconds without a turn after which a session is pinned no more."""
UNACCEPTED_S = 20.0
"""Seconds that a pin stays without an accepted turn, and that a drain lasts at least: shorter than in production, so
that versions come and go while things go wrong."""
ACCEPT_S = 2.0
VIEW_S = FRESH_S + TRUST_S
"""How old the newest state may be that a view which says it is fresh has missed: a writer may have died before it told
``live``, and the store may be away."""
SLACK_S = 0.01


class RegistryHistory(History):
    """Every turn in order; ``on_opened`` is told each turn when the journal first has it."""

    def __init__(self, time: Callable[[], float]) -> None:
        super().__init__(time)
        self.on_opened: Callable[[Turn], None] = lambda turn: None

    def journalled(self, turn: Turn) -> None:
        is_new = turn.id not in self.opened_at
        super().journalled(turn)
        if is_new:
            self.on_opened(turn)


class CutWay(Way):
    """The way to one service, which may be cut while those to the others are not."""

    is_cut = False

    async def _hop(self, lost: float) -> None:
        if self.is_cut:
            raise DependencyDown("cut off")
        await super()._hop(lost)


class PinStore(SimStore):
    """The turns table, which also counts pins as the real one does."""

    async def count(self, version: str, *, since: float) -> int:
        self._answer()
        return len(set(pinned_keys(self._turns.values(), version, since=since)))


def pinned_keys(turns: Any, version: str, *, since: float) -> Iterator[str]:
    """Keys of the sessions that are on a version, by these turns."""
    highest: dict[str, int] = {}
    turns = [turn for turn in turns if turn.job.pin]
    for turn in turns:
        highest[turn.job.pin] = max(turn.job.generation, highest.get(turn.job.pin, 0))
    for turn in turns:
        job = turn.job
        if job.version == version and job.created >= since and job.generation == highest[job.pin]:
            yield job.pin


@dataclass(slots=True)
class Node:
    """One process, with what it is made of and its ways to the services."""

    name: str
    make: Callable[["Node"], None]
    process: Process = field(init=False)
    parts: dict[str, Any] = field(default_factory=dict)
    ways: dict[str, CutWay] = field(default_factory=dict)


class WatchedDrains(Drains):
    """The drains, with the time at which each look began."""

    began = 0.0

    async def look(self) -> None:
        self.began = self._clock.monotonic()
        await super().look()


def make_version(label: str) -> Version:
    return Version(model=NAME, label=label, source="/", digest=label, text="t", max_model_len=100, created=0.0)
