"""The fleet of ``launching`` under a load, with the real autoscaler and the real ledger of replicas' time.

The load is a fluid: seconds of work that come each second. Replicas that run share it, and tell what they have served.
What is true of the load in the last seconds bounds what the autoscaler may order.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any, cast

from axon.control.fitting import FittedTargets
from axon.control.reconciler import Targets
from axon.control.replica_ledger import LedgeredTargets, Payers
from axon.control.scaling import ScaledTargets
from axon.domain.billing.replica_use import ReplicaUse, UseKind
from axon.domain.fleet.demand import Demand
from axon.domain.fleet.replica import Group, LaunchState, ReplicaName
from axon.domain.fleet.swapping import SwapRules
from axon.domain.model.served_version import ServedVersion
from axon.domain.presence import Load, Presence, Service
from axon.domain.registry.snapshot import Snapshot
from axon.domain.scaling.policy import ScalingPolicy
from axon.domain.tenants.tenant import Terms
from axon.registry.cold_starts import ColdStarts
from tests.sim.faults import Through, Way
from tests.sim.launching import COLD, HOT, FleetWorld
from tests.sim.loop import SimLoop

MOST = 24
"""Replicas that the deployment may have."""
POLICY = ScalingPolicy(look_s=1.0, quiet_s=10.0, hold_s=6.0, cold_start_s=1.0)
ROOM = 6
"""Replicas that the machine of a fitted fleet has memory for."""
_TICK_S = 0.25
_SPEED = 2000.0
"""Tokens per second of a replica."""
_JOB = 400.0
"""Tokens of a job, half of them of its prompt."""
_MEMORY_S = 20.0
"""Seconds after which what was true of the load excuses no order any more."""


class ScaledWorld(FleetWorld):
    """A fleet that follows its load."""

    settle_s = 120.0

    def __init__(self, seed: int, loop: SimLoop) -> None:
        self.offered, self.backlog_s = 1.0, 0.0
        self.served: dict[str, float] = {}
        """Tokens by run of a replica."""
        self.busy = 0.0
        self.uses: dict[str, ReplicaUse] = {}
        self._past: deque[tuple[float, float, float]] = deque(maxlen=4000)
        self._live_away_until = 0.0
        super().__init__(seed, loop)
        self.store.widen(MOST)

    # --- what is true

    def least_lately(self, group: Group) -> int:
        """No fewer than the lowest load of the last seconds keeps busy."""
        lowest = min((offered for _, offered, _ in self._lately()), default=0.0)
        return max(super().least_lately(group), int(lowest)) if group == HOT else 0

    def most_lately(self, group: Group) -> int:
        """Twice what the highest load keeps busy, and what clears the longest backlog within a second."""
        if group == COLD:
            return 1
        highest = max((offered for _, offered, _ in self._lately()), default=0.0)
        longest = max((backlog for _, _, backlog in self._lately()), default=0.0)
        return max(super().most_lately(group), min(MOST, ceil(2 * highest + longest) + 3))

    def settled(self) -> bool:
        num = len(self.usable(HOT))
        fits = max(self.store.deployment(HOT).min_replicas, ceil(self.offered)) <= num <= ceil(self.offered / 0.6) + 3
        return fits and not self.usable(COLD) and len(self.machine.launched) == num and self.backlog_s < 1.0

    def _lately(self) -> Sequence[tuple[float, float, float]]:
        since = self.loop.monotonic() - _MEMORY_S
        return [each for each in self._past if each[0] >= since]

    # --- what control sees

    def make_targets(self, way: Way) -> Targets:
        scaled = self._scaled(way)
        books = cast("Any", Through(self, way))
        payers = Payers(turns=books, tenants=books, plans=books, usage=books, defaults=Terms())
        return LedgeredTargets(scaled, payers, self.loop)

    def _scaled(self, way: Way) -> ScaledTargets:
        cold_starts = ColdStarts(cast("Any", Through(self.live.cache, way)))
        return ScaledTargets(POLICY, cold_starts, self.loop, deaf_s=3.0)

    async def look(self, snapshot: Snapshot, groups: Sequence[Group]) -> Mapping[Group, Demand]:
        found = await super().look(snapshot, groups)
        waiting = int(self.backlog_s * _SPEED / _JOB)
        return {**found, HOT: Demand(waiting=waiting, unfinished=waiting + ceil(self.busy))}

    async def first_unfinished(self, deployment: str, version: str) -> str | None:
        return "acme" if deployment == "cold" and self._asked_since is not None else None

    async def all(self) -> Sequence[Any]:
        return ()

    async def add_replicas(self, uses: Sequence[ReplicaUse]) -> None:
        """The ledger's part: a record is raised, never doubled, and is about a start that was asked for."""
        for use in uses:
            if (use.kind, use.tenant, use.deployment) != (UseKind.COLD_START, "acme", "cold"):
                raise self.history.broken(f"{use.id} is billed to '{use.tenant}' as {use.kind}")
            if not 0.0 <= use.seconds <= self.loop.now() - use.at + 1e-6:
                raise self.history.broken(f"{use.id} is billed {use.seconds:.1f} s")
            old = self.uses.get(use.id)
            self.uses[use.id] = use if old is None else replace(old, seconds=max(old.seconds, use.seconds))

    # --- replicas

    async def _announce(self) -> None:
        """Replicas take their parts of the work, and tell what they have served."""
        while True:
            await asyncio.sleep(_TICK_S)
            ready = [
                (name, each.incarnation)
                for name, each in self.machine.launched.items()
                if each.state is LaunchState.RUNNING and self.loop.now() - each.since > 0.5
            ]
            hot = [run for name, run in ready if name.group == HOT]
            work_s = self.backlog_s + self.offered * _TICK_S
            done_s = min(work_s, _TICK_S * len(hot))
            self.backlog_s, self.busy = min(300.0, work_s - done_s), done_s / _TICK_S
            self._past.append((self.loop.monotonic(), self.offered, self.backlog_s))
            for run in hot:
                self.served[run] = self.served.get(run, 0.0) + done_s / len(hot) * _SPEED
            for name, run in ready:
                use = self.busy / len(hot) if name.group == HOT and hot else 0.0
                if self.loop.monotonic() >= self._live_away_until:
                    await self.live.presences.put(_presence(name, run, self.served.get(run, 0.0), use), ttl_s=1.0)

    # --- the nemesis

    def faults(self) -> list[Callable[[], None]]:
        return [*super().faults(), self._load, self._load, self._load, self._workers_cut_off]

    def _load(self) -> None:
        self.offered = self.rng.choice([0.2, 1.0, 2.5, 4.0, 6.0])
        self.history.note(f"work for {self.offered} replicas comes")

    def _workers_cut_off(self) -> None:
        """Workers run on and nobody hears of them: their presences expire, and come back."""
        self.history.note("no worker is heard")
        self._live_away_until = self.loop.monotonic() + self.rng.uniform(1.5, 8.0)

    def heal(self) -> None:
        super().heal()
        self._live_away_until = 0.0


class FittedWorld(ScaledWorld):
    """The same on a machine that has not room for all: a start must find its memory free."""

    def __init__(self, seed: int, loop: SimLoop) -> None:
        self._led_since = 0.0
        super().__init__(seed, loop)
        self.store.widen(MOST, memory_bytes=1)

    def make_targets(self, way: Way) -> Targets:
        rules = SwapRules(max_wait_s=3.0, min_run_s=1.0, max_swaps=30)
        return FittedTargets(self._scaled(way), ROOM, rules, self.loop)

    def least_lately(self, group: Group) -> int:
        """What the registry asks for fits; beyond it, one makes room for another."""
        return self.store.least_lately(group)

    def most_lately(self, group: Group) -> int:
        """As many as have room beside all others, those that drain counted. The first list of a new leader may lack
        what an order of the last one, that was on its way, starts."""
        others = sum(name.group != group for name in self.machine.launched)
        drain = sum(
            each.state is LaunchState.STOPPING for each in self.machine.launched.values() if each.name.group == group
        )
        is_new = self.loop.monotonic() - self._led_since < 6.0
        return ROOM - others - drain + 2 * is_new

    def took(self, term: int, what: str) -> None:
        if term > self._term:
            self._led_since = self.loop.monotonic()
        super().took(term, what)

    def heal(self) -> None:
        super().heal()
        self.offered = min(self.offered, 2.5)


def _presence(name: ReplicaName, incarnation: str, tokens: float, use: float) -> Presence:
    deployment = name.group.deployment
    served = ServedVersion(name=deployment, version=f"{deployment}@v1", max_model_len=100, created=0.0)
    service = Service(
        jobs=int(tokens / _JOB),
        prompt_tokens=int(tokens / 2),
        answer_tokens=int(tokens / 2),
        expected_tokens=tokens / 2,
    )
    load = Load(slots=8, free_slots=8 - round(8 * use), num_tokens=0, tokens_per_s=_SPEED, service=service)
    return Presence(worker=str(name), incarnation=incarnation, deployment=served, load=load, at=0.0)
