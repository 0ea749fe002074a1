"""A small fleet as values: a registry with two versions, launched replicas, announcements, a launcher that obeys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from axon.domain.fleet.demand import Demand
from axon.domain.fleet.reconcile import Decided, Ensure, Memory, Pace, Stop, reconcile
from axon.domain.fleet.replica import Group, Launched, LaunchState, ReplicaName, ReplicaSpec
from axon.domain.fleet.sight import Sight, Target
from axon.domain.model.served_version import ServedVersion
from axon.domain.presence import Load, Presence
from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.snapshot import Snapshot
from tests.domain.registry import builders

ONE, TWO = Group("small"), Group("small", "b")
"""The groups of the first and the second version."""
VERSIONS = {"": "small@v1", "b": "small@v2"}
NOBODY = {group: Demand(waiting=0, unfinished=0) for group in (ONE, TWO)}


def deployed(*, states: Sequence[MemberState] = (MemberState.READY,), **changes: Any) -> Deployment:
    """The deployment ``small`` with a version for each of the states."""
    members = tuple(
        Member(version=version, letter=letter, state=state)
        for (letter, version), state in zip(VERSIONS.items(), states, strict=False)
    )
    return replace(builders.deployment(), **{"members": members, "max_replicas": 8, **changes})


def registry(*deployments: Deployment) -> Snapshot:
    return builders.snapshot(*deployments)


def launched(
    name: ReplicaName, state: LaunchState = LaunchState.RUNNING, *, version: str = "", incarnation: str = "1"
) -> Launched:
    version = version or VERSIONS[name.group.letter]
    spec = ReplicaSpec(version=version, label=version.partition("@")[2])
    return Launched(name=name, incarnation=incarnation, spec=spec, state=state, since=0.0)


def present(worker: str, *, draining: bool = False, version: str = "small@v1") -> Presence:
    served = ServedVersion(name="small", version=version, text="text", max_model_len=2048, created=1.0)
    load = Load(slots=4, free_slots=4, num_tokens=0)
    return Presence(worker=worker, incarnation="i", deployment=served, load=load, draining=draining, at=0.0)


def to(count: int, group: Group = ONE) -> dict[Group, Target]:
    return {group: Target(count, "the test says so")}


@dataclass
class Fleet:
    """A fleet that does what it is told, one step behind."""

    snapshot: Snapshot = field(default_factory=lambda: registry(deployed()))
    pace: Pace = field(default_factory=Pace)
    now: float = 1000.0
    run_id: str = "run-1"
    demand: Mapping[Group, Demand] = field(default_factory=lambda: NOBODY)
    replicas: dict[ReplicaName, Launched] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    memory: Memory = field(default_factory=Memory)
    starts: int = 0

    def sight(self) -> Sight:
        return Sight(
            snapshot=self.snapshot,
            launched=tuple(self.replicas.values()),
            presences=tuple(present(each) for each in sorted(self.present)),
            run_id=self.run_id,
            demand=self.demand,
        )

    def run(self, *names: ReplicaName) -> None:
        """Replicas that a launcher runs and that announce themselves."""
        for name in names:
            self.replicas[name] = launched(name, incarnation=self._next())
            self.present.add(str(name))

    def look(self, targets: Mapping[Group, Target]) -> Decided:
        decided = reconcile(self.sight(), targets, self.memory, now=self.now, pace=self.pace)
        self.memory = decided.memory
        return decided

    def settle(self, targets: Mapping[Group, Target], looks: int = 60) -> list[Decided]:
        """Looks, with what was ordered carried out between them."""
        done = []
        for _ in range(looks):
            self.step()
            decided = self.look(targets)
            self.carry_out(decided)
            done.append(decided)
            self.now += 1.0
        return done

    def carry_out(self, decided: Decided) -> None:
        for order in decided.orders:
            match order:
                case Ensure() if order.name not in self.replicas:
                    made = launched(order.name, LaunchState.STARTING, version=order.spec.version)
                    self.replicas[order.name] = replace(made, incarnation=self._next())
                case Stop() if (old := self.replicas.get(order.name)) and old.incarnation == order.incarnation:
                    self.replicas[order.name] = replace(old, state=LaunchState.STOPPING)
                case _:
                    pass

    def step(self) -> None:
        """What was told to stop is gone; what starts runs and announces itself."""
        for name, each in list(self.replicas.items()):
            if each.state is LaunchState.STOPPING:
                del self.replicas[name]
                self.present.discard(str(name))
            elif each.state is LaunchState.STARTING:
                self.replicas[name] = replace(each, state=LaunchState.RUNNING)
                self.present.add(str(name))

    def count(self, group: Group = ONE) -> int:
        return sum(name.group == group for name in self.replicas)

    def _next(self) -> str:
        self.starts += 1
        return str(self.starts)
