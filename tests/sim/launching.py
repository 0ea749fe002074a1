"""A fleet that runs itself, in virtual time: two controls, a launcher, replicas, and services that fail.

Leader, reconciler, targets and launcher are production code. What the launcher takes is watched: an order is right or
wrong when it is taken, whoever gave it.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from axon.adapters.launch.memory import MemoryLauncher, MemoryReplicas
from axon.control.leader import Leader
from axon.control.reconciler import Reconciler, Targets
from axon.domain.fleet.demand import Demand
from axon.domain.fleet.reconcile import Pace
from axon.domain.fleet.replica import Group, LaunchState, ReplicaName, ReplicaSpec
from axon.domain.model.served_version import ServedVersion
from axon.domain.presence import Load, Presence
from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.version import Version
from axon.errors import AxonError, DependencyDown
from axon.registry.fleet_report import FleetReports
from tests.control.least_targets import LeastTargets
from tests.sim.faults import Rates, Through, Way
from tests.sim.history import History, Violation
from tests.sim.loop import SimLoop, Stuck
from tests.sim.processes import Process
from tests.sim.schedule import Outcome
from tests.sim.services import make_live

HOT, COLD = Group("hot"), Group("cold")
MIN_HOT, MAX_HOT = 2, 6
IDLE_S = 2.0
HORIZON_S, SETTLE_S = 60.0, 60.0
LEASE_S = 1.5
_LATELY_S = 12.0
"""Seconds for which an order may be on its way: a control that stands still gives it when it goes on."""
_USABLE = (LaunchState.RUNNING, LaunchState.STARTING, LaunchState.WAITING)


class Watched(MemoryLauncher):
    """The launcher, with every order checked against what is true."""

    def __init__(self, world: "FleetWorld", process: Process) -> None:
        super().__init__(world.machine)
        self._world, self._process = world, process

    async def _arrive(self) -> None:
        """An order is on its way for a moment, or for so long that another control leads by then."""
        world = self._world
        if world.is_tormented and world.rng.random() < 0.1 and not self._process.paused:
            world.history.note(f"an order of {self._process.name} is held up")
            self._process.pause()
            world.loop.call_later(world.rng.uniform(1.0, 6.0), self._process.go_on)
            await self._process.gate()

    async def ensure(self, name: ReplicaName, spec: ReplicaSpec, *, term: int) -> None:
        await self._arrive()
        await super().ensure(name, spec, term=term)
        self._world.took(term, f"ensure {name}")
        num, most = len(self._world.usable(name.group)), self._world.most_lately(name.group)
        if num > most:
            raise self._world.history.broken(f"{name} was started: {num} run, and {most} are wanted at most")

    async def stop(self, name: ReplicaName, incarnation: str, *, term: int) -> None:
        await self._arrive()
        before = self._world.usable(name.group)
        await super().stop(name, incarnation, term=term)
        self._world.took(term, f"stop {name}")
        after = self._world.usable(name.group)
        if len(after) == len(before):
            return
        least = self._world.least_lately(name.group)
        if len(after) < least:
            raise self._world.history.broken(f"{name} was stopped: {len(after)} are left of {least} that are wanted")
        if not after and self._world.demand_since(name.group) is not None:
            raise self._world.history.broken(f"{name} was stopped, the last one, while somebody waits for it")


class SimRegistryStore:
    """Terms and a registry; what is wanted changes now and then."""

    def __init__(self, world: "FleetWorld") -> None:
        self._world, self._term = world, 0
        hot = Deployment(name="hot", model="hot", members=(_member("hot"),), stable="hot@v1", created=0.0)
        cold = replace(hot, name="cold", model="cold", members=(_member("cold"),), stable="cold@v1")
        self._deployments = {
            "hot": replace(hot, min_replicas=MIN_HOT, max_replicas=MAX_HOT),
            "cold": replace(cold, min_replicas=0, max_replicas=1, idle_s=IDLE_S),
        }
        self._revision = 1
        self._least: list[tuple[float, int]] = [(0.0, MIN_HOT)]

    async def take(self) -> int:
        self._term += 1
        self._world.newest_term = self._term
        return self._term

    async def revision(self) -> int:
        return self._revision

    async def snapshot(self) -> Snapshot:
        return Snapshot(
            revision=self._revision,
            versions={f"{name}@v1": _version(name) for name in self._deployments},
            deployments=dict(self._deployments),
        )

    def deployment(self, group: Group) -> Deployment:
        return self._deployments[group.deployment]

    def want(self, count: int) -> None:
        """Another least number of replicas."""
        self._revision += 1
        self._deployments["hot"] = replace(self._deployments["hot"], min_replicas=count)
        self._least.append((self._world.loop.monotonic(), count))

    def widen(self, max_replicas: int, *, memory_bytes: int = 0) -> None:
        """Another largest number of replicas of the hot deployment, and what a replica of each needs."""
        sized = {name: replace(each, memory_bytes=memory_bytes) for name, each in self._deployments.items()}
        self._deployments = {**sized, "hot": replace(sized["hot"], max_replicas=max_replicas)}

    def least_lately(self, group: Group) -> int:
        """The lowest number that was wanted within the last seconds: an order may have been decided a while ago."""
        return min(self._lately()) if group == HOT else 0

    def most_lately(self, group: Group) -> int:
        """The highest number, likewise."""
        return max(self._lately()) if group == HOT else 1

    def _lately(self) -> list[int]:
        since = self._world.loop.monotonic() - _LATELY_S
        times = [at for at, _ in self._least[1:]] + [float("inf")]
        return [count for (_, count), until in zip(self._least, times, strict=True) if until >= since]


class FleetWorld:
    """Services, controls, replicas and a nemesis, all driven by one seed."""

    settle_s = SETTLE_S

    def __init__(self, seed: int, loop: SimLoop) -> None:
        self.rng, self.loop = random.Random(f"fleet {seed}"), loop
        self.history = History(loop.monotonic)
        self.live = make_live(loop, self.history, self.rng)
        self.machine = MemoryReplicas(loop)
        self.store = SimRegistryStore(self)
        self.newest_term = self._term = 0
        self.rates = Rates(
            lost_call=self.rng.choice([0, 0.01, 0.1]),
            lost_answer=self.rng.choice([0, 0.01, 0.1]),
            crash=self.rng.choice([0, 0.001, 0.01]),
        )
        self._asked_since: float | None = None
        self._away_until = 0.0
        self.is_tormented = True
        self.controls: dict[str, Process] = {}
        for name in ("control0", "control1"):
            self._start(name)
        self._announcing = loop.create_task(self._announce())
        self._ending = loop.create_task(self._end_drained())

    # --- what is true

    def took(self, term: int, what: str) -> None:
        """An order was taken. One of a lower term than one before came from a leader that was replaced."""
        self.history.note(f"{what} (term {term})")
        if term < self._term:
            raise self.history.broken(f"{what} of term {term} was taken after one of term {self._term}")
        self._term = term

    def usable(self, group: Group) -> list[ReplicaName]:
        return [name for name, each in self.machine.launched.items() if name.group == group and each.state in _USABLE]

    def least_lately(self, group: Group) -> int:
        """Replicas that the group had to have at least, by anything that was true within the last seconds."""
        return self.store.least_lately(group)

    def most_lately(self, group: Group) -> int:
        """Replicas that it may have at most, likewise."""
        return self.store.most_lately(group)

    def demand_since(self, group: Group) -> float | None:
        """Since when somebody has waited for the cold deployment, for longer than an order is on its way; else None."""
        since = self._asked_since if group == COLD else None
        return since if since is not None and self.loop.monotonic() - since > _LATELY_S else None

    async def look(self, snapshot: Snapshot, groups: Sequence[Group]) -> Mapping[Group, Demand]:
        """The demand reader's part: counted on the far side of a way that loses calls."""
        if self.loop.monotonic() < self._away_until:
            raise DependencyDown("the queue is away")
        waiting = int(self._asked_since is not None)
        return {HOT: Demand(waiting=1, unfinished=1), COLD: Demand(waiting=waiting, unfinished=0)}

    # --- processes

    def _start(self, name: str) -> None:
        self.history.note(f"{name} starts")
        process = self.controls[name] = Process(name, self._failed)
        way = Way(process, self.rates, self.rng, self._crashed, self.history)
        leader = Leader(cast("Any", Through(self.live.crowds, way)), self.loop, lease_s=LEASE_S)
        reconciler = Reconciler(
            cast("Any", Through(Watched(self, process), way)),
            cast("Any", Through(self.store, way)),
            cast("Any", Through(self.store, way)),
            cast("Any", Through(self.live.presences, way)),
            cast("Any", Through(self.live.leases, way)),
            _Blind(Through(self, way)),
            lambda: self.make_targets(way),
            FleetReports(cast("Any", Through(self.live.cache, way))),
            self.loop,
            name=name,
            every_s=0.5,
            deposed_s=2 * LEASE_S,
            pace=Pace(hold_s=3.0, every_s=0.5),
            leads=leader.leads,
        )
        process.spawn(leader.run())
        process.spawn(reconciler.run())

    def make_targets(self, way: Way) -> Targets:
        """The targets of one reign, with what they ask on the far side of a way."""
        return LeastTargets(self.loop)

    def _failed(self, process: Process, error: BaseException) -> None:
        if process.alive and not isinstance(error, Violation):
            self.history.broken(f"{process.name} failed: {error!r}")

    def _crashed(self, process: Process) -> None:
        self.history.note(f"{process.name} crashes")
        process.crash()
        self.loop.call_later(self.rng.uniform(0.1, 3.0), self._start, process.name)

    async def _announce(self) -> None:
        """What every replica does while it runs: half a second after its start it is ready."""
        while True:
            await asyncio.sleep(0.25)
            for name, each in list(self.machine.launched.items()):
                if each.state is LaunchState.RUNNING and self.loop.now() - each.since > 0.5:
                    await self.live.presences.put(_presence(name, each.incarnation), ttl_s=1.0)

    async def _end_drained(self) -> None:
        """Replicas that were told to stop end a second later."""
        while True:
            await asyncio.sleep(0.25)
            for name, each in list(self.machine.launched.items()):
                if each.state is LaunchState.STOPPING and self.loop.now() - each.since > 1.0:
                    self.machine.finish(name)

    # --- the nemesis

    async def torment(self) -> None:
        faults = self.faults()
        while self.loop.monotonic() < HORIZON_S:
            await asyncio.sleep(self.rng.expovariate(1 / 2.5))
            self.rng.choice(faults)()
            if self.history.violation:
                raise Violation

    def faults(self) -> list[Callable[[], None]]:
        """What may happen, each as often as it is in the list."""
        return [
            *(self._crash_control, self._pause_control, self._flush),
            *(self._crash_replica, self._want, self._ask, self._ask, self._queue_away, self._queue_away),
        ]

    def settled(self) -> bool:
        """Whether the fleet is as it shall be, when nothing goes wrong any more."""
        hot, cold = self.usable(HOT), self.usable(COLD)
        return (
            len(hot) == self.store.deployment(HOT).min_replicas and not cold and len(self.machine.launched) == len(hot)
        )

    def heal(self) -> None:
        self.history.note("healed")
        self.is_tormented = False
        self.rates.heal()
        self._asked_since = None
        for process in self.controls.values():
            process.go_on()

    def _crash_control(self) -> None:
        if (process := self.rng.choice(list(self.controls.values()))).alive:
            self._crashed(process)

    def _pause_control(self) -> None:
        process = self.rng.choice(list(self.controls.values()))
        if process.alive and not process.paused:
            self.history.note(f"{process.name} stands still")
            process.pause()
            self.loop.call_later(self.rng.uniform(0.2, 8.0), process.go_on)

    def _flush(self) -> None:
        self.history.note("live forgets everything")
        self.live.lose_everything()

    def _crash_replica(self) -> None:
        running = [name for name, each in self.machine.launched.items() if each.state is LaunchState.RUNNING]
        if running:
            self.machine.crash(self.rng.choice(running), "it crashed")

    def _queue_away(self) -> None:
        self.history.note("the queue goes away")
        self._away_until = self.loop.monotonic() + self.rng.uniform(2.0, 12.0)

    def _want(self) -> None:
        self.store.want(self.rng.randint(1, MAX_HOT - 2))

    def _ask(self) -> None:
        """Somebody begins to wait for the cold deployment, and is answered later."""
        if self._asked_since is None:
            self._asked_since = self.loop.monotonic()
            self.loop.call_later(self.rng.uniform(15.0, 50.0), self._answer)

    def _answer(self) -> None:
        self._asked_since = None


class _Blind:
    """A demand reader: what does not answer is not known."""

    def __init__(self, far: Any) -> None:
        self._far = far

    async def look(self, snapshot: Snapshot, groups: Sequence[Group]) -> Mapping[Group, Demand]:
        try:
            found: Mapping[Group, Demand] = await self._far.look(snapshot, groups)
        except AxonError:
            return {}
        return found


def run(seed: int, make_world: Callable[[int, SimLoop], FleetWorld] = FleetWorld) -> Outcome:
    """Runs one schedule; the same seed gives the same history."""
    loop = SimLoop()
    loop.set_exception_handler(lambda loop, context: None)
    world: list[FleetWorld] = []
    problem = ""
    try:
        loop.run(_live(seed, loop, world, make_world))
    except Stuck as error:
        problem = str(error)
    except Violation:
        pass
    history = world[0].history
    return Outcome(seed, history.violation or problem, history.events, len(history.events))


async def _live(
    seed: int, loop: SimLoop, kept: list[FleetWorld], make_world: Callable[[int, SimLoop], FleetWorld]
) -> None:
    world = make_world(seed, loop)
    kept.append(world)
    await world.torment()
    world.heal()
    deadline = loop.monotonic() + world.settle_s
    quiet_since = loop.monotonic()
    while loop.monotonic() - quiet_since < 5.0:
        await asyncio.sleep(0.5)
        if world.history.violation:
            raise Violation
        if not world.settled():
            quiet_since = loop.monotonic()
        if loop.monotonic() > deadline:
            raise world.history.broken(f"not settled: {sorted(map(str, world.machine.launched))}")


def _member(model: str) -> Member:
    return Member(version=f"{model}@v1", state=MemberState.READY)


def _version(model: str) -> Version:
    return Version(model=model, label="v1", source="/", digest="d", text="t", max_model_len=100, created=0.0)


def _presence(name: ReplicaName, incarnation: str) -> Presence:
    served = ServedVersion(name=name.group.deployment, version="v1", max_model_len=100, created=0.0)
    load = Load(slots=1, free_slots=1, num_tokens=0)
    return Presence(worker=str(name), incarnation=incarnation, deployment=served, load=load, at=0.0)
