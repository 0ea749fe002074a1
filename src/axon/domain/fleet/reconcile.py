"""The reconciler: the fleet as it shall be against the fleet as it is gives orders to a launcher. Pure.

Orders are levels, so a leader may crash between any two of them: the next look of any leader sees what is there and
goes on. A look without the launcher's list gives no order. What a launcher does not list is never stopped.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import TypeVar

from axon.domain.fleet.desired import Wanted, meant, wanted
from axon.domain.fleet.replica import Group, Launched, LaunchState, ReplicaName, ReplicaSpec
from axon.domain.fleet.sight import Sight, Target

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensure:
    """Order: the replica shall run."""

    name: ReplicaName
    spec: ReplicaSpec
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Order: this run of the replica shall drain and end."""

    name: ReplicaName
    incarnation: str
    reason: str


Order = Ensure | Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How much may change at once."""

    per_look: int = 8
    """Most replicas that one look starts, and most that it stops."""
    per_group: int = 2
    """Most replicas of one group that one look starts, and most that it stops."""
    share: float = 0.1
    """In a large fleet a look may change this part of the replicas instead, of all and of each group, if it is more."""
    every_s: float = 1.0
    """Least seconds between two looks that change one group."""
    hold_s: float = 9.0
    """Seconds without a stop after the presences may have been lost: three of their lifetimes."""
    unknown_looks: int = 3
    """Looks in a row at which the registry does not know a replica before it is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What a leader remembers between looks. All of it may be lost: a leader without it stops nothing for a while."""

    run_id: str = ""
    held_until: float = float("-inf")
    """Monotonic time before which nothing is stopped."""
    seen: frozenset[ReplicaName] = frozenset()
    """Replicas that have announced themselves."""
    missing: bool = False
    """Whether half of them were missing at the last look."""
    unknown: Mapping[tuple[ReplicaName, str], int] = field(default_factory=dict)
    """For how many looks each run of a replica has not been known to the registry."""
    acted: Mapping[Group, float] = field(default_factory=dict)
    """Monotonic time of the last order for each group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """What was decided about a group at one look, and what it has."""

    group: Group
    wanted: int
    reason: str
    starting: int = 0
    """Launched replicas that have not announced themselves, those that crash and wait among them."""
    ready: int = 0
    draining: int = 0
    more: int = 0
    """Ready replicas that it may still gain: those that start, and those that its limits leave room for. A group whose
    starts fail gains none beyond those that start now."""
    held: str = ""
    """Why its replicas are not changed to what is wanted at this look; empty when they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The outcome of one look."""

    orders: tuple[Order, ...]
    groups: tuple[GroupState, ...]
    memory: Memory
    held: str = ""
    """Why nothing is stopped at this look; empty when replicas may be stopped."""


def reconcile(
    sight: Sight, targets: Mapping[Group, Target], memory: Memory, *, now: float, pace: Pace | None = None
) -> Decided:
    """Decides which replicas to start and which to stop. ``now`` is in seconds of a monotonic clock.

    A running group that has no target keeps what it has.
    """
    pace = pace or Pace()
    if sight.launched is None:
        return Decided(orders=(), groups=(), memory=memory, held="what runs is not known: the launcher gave no list")
    memory, held = _remembered(sight, memory, now=now, pace=pace)
    plans = _plans(sight, targets)
    due = sorted(
        (plan for plan in plans if now - memory.acted.get(plan.group, float("-inf")) >= pace.every_s),
        key=lambda plan: (bool(plan.serving), memory.acted.get(plan.group, float("-inf")), plan.group),
    )
    most = max(pace.per_look, int(pace.share * len(sight.launched)))
    ensures = list(islice(_by_turns([plan.ensures(plan.pace(pace)) for plan in due]), most))
    stops: list[Stop] = []
    if not held:
        gone = _unknown(sight.launched, memory.unknown, pace)
        stops = list(islice(_by_turns([gone, *(plan.stops(plan.pace(pace)) for plan in due)]), most))
    orders: tuple[Order, ...] = (*ensures, *stops)
    acted = {**memory.acted, **{order.name.group: now for order in orders}}
    known = {plan.group for plan in plans}
    return Decided(
        orders=orders,
        groups=tuple(plan.state(held) for plan in plans),
        memory=replace(memory, acted={group: at for group, at in acted.items() if group in known}),
        held=held,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """One group: what it shall have and what it has."""

    group: Group
    of: Wanted
    target: Target
    serving: tuple[Launched, ...]
    """Replicas that run or will, the most useful first."""
    draining: tuple[Launched, ...]
    taken: frozenset[int]
    """Indexes whose names somebody has, also a replica of another version or one on a machine that is lost."""
    ready: frozenset[ReplicaName]
    room: int
    """How many more replicas its deployment may have, with those that drain counted; negative if it has too many."""

    def pace(self, pace: Pace) -> int:
        """Most replicas of the group that one look starts or stops."""
        return max(pace.per_group, int(pace.share * len(self.serving)))

    def ensures(self, most: int) -> list[Ensure]:
        missing = self.target.count - len(self.serving)
        if missing <= 0 or not self.of.may_start:
            return []
        reason = f"{self.target.count} wanted ({self.target.reason}), {len(self.serving)} there"
        free = (index for index in count() if index not in self.taken)
        return [
            Ensure(name=self.group.replica(index), spec=self.of.spec, reason=reason)
            for index in islice(free, max(0, min(missing, self.room, most)))
        ]

    def stops(self, most: int) -> list[Stop]:
        excess = len(self.serving) - self.target.count
        reason = f"{self.target.count} wanted ({self.target.reason}), {len(self.serving)} there"
        last = self.serving[::-1][: max(0, min(excess, most))]
        return [Stop(name=each.name, incarnation=each.incarnation, reason=reason) for each in last]

    def state(self, held: str) -> GroupState:
        missing = self.target.count - len(self.serving)
        if missing > 0 and self.of.may_start and self.room <= 0:
            held = f"its deployment has its {self.of.deployment.most_replicas} replicas, with those that drain"
        elif missing >= 0:
            held = ""
        num_ready = sum(each.name in self.ready for each in self.serving)
        return GroupState(
            group=self.group,
            wanted=self.target.count,
            reason=self.target.reason,
            starting=len(self.serving) - num_ready,
            ready=num_ready,
            draining=len(self.draining),
            more=self._more(),
            held=held,
        )

    def _more(self) -> int:
        starting = [each for each in self.serving if each.name not in self.ready]
        num_failing = sum(each.state is LaunchState.WAITING for each in starting)
        if num_failing or not self.of.may_start:
            return len(starting) - num_failing
        most = len(self.serving) + max(0, self.room + len(self.draining))
        if self.target.most is not None:
            most = min(most, self.target.most)
        elif self.target.is_full:
            most = len(self.serving)
        return len(starting) + max(0, most - len(self.serving))


def _plans(sight: Sight, targets: Mapping[Group, Target]) -> list[_Plan]:
    """A plan for each group that the registry knows, in order."""
    own, there = wanted(sight.snapshot), _by_group(sight.launched or ())
    known = {group: of for group in sorted({*own, *targets, *there}) if (of := meant(sight.snapshot, group))}
    ready = _ready(sight)
    used = Counter(each.name.group.deployment for each in sight.launched or () if each.state is not LaunchState.LOST)
    plans: list[_Plan] = []
    for deployment in sight.snapshot.deployments.values():
        groups = [group for group in known if group.deployment == deployment.name]
        serving = {group: _serving(there[group], known[group].spec.version, ready) for group in groups}
        aims = {group: _target(sight, group, group in own, known[group], targets, serving[group]) for group in groups}
        fitted, limit = _fitted(aims, deployment.most_replicas)
        room = limit - used[deployment.name]
        for group in groups:
            plan = _Plan(
                group=group,
                of=known[group],
                target=fitted[group],
                serving=serving[group],
                draining=tuple(each for each in there[group] if _drains(each)),
                taken=frozenset(each.name.index for each in there[group]),
                ready=ready,
                room=room,
            )
            room -= len(plan.ensures(room))
            plans.append(plan)
    return plans


def _by_group(launched: Sequence[Launched]) -> defaultdict[Group, list[Launched]]:
    there: defaultdict[Group, list[Launched]] = defaultdict(list)
    for each in launched:
        there[each.name.group].append(each)
    return there


def _target(
    sight: Sight, group: Group, is_own: bool, of: Wanted, targets: Mapping[Group, Target], serving: Sequence[Launched]
) -> Target:
    """The group's target; never zero while somebody waits, or while nobody knows whether somebody does, unless the
    machine has no room for it now."""
    given = targets.get(group)
    if given is not None and given.is_full and of.may_start:
        return given
    if not of.may_start:
        aim = Target(0, f"its version is {of.member.state}")
    elif given is not None:
        aim = replace(given, count=max(0, given.count))
    elif is_own:
        aim = Target(len(serving), "nothing says how many")
    else:
        aim = Target(0, f"its deployment runs in the pool '{of.deployment.pool}'")
    demand = sight.demand_of(group)
    if aim.count or (demand is not None and not demand) or (demand is None and not serving):
        return aim
    return replace(aim, count=1, reason=f"{aim.reason}, but {'its demand is not known' if demand is None else demand}")


def _fitted(aims: Mapping[Group, Target], max_replicas: int) -> tuple[dict[Group, Target], int]:
    """The targets within the deployment's limit, and the limit. Each version that is wanted keeps one replica, since
    sessions are pinned to it; the largest targets give way first."""
    limit = max(max_replicas, sum(aim.count > 0 for aim in aims.values()))
    counts = {group: min(aim.count, limit) for group, aim in aims.items()}
    while sum(counts.values()) > limit:
        largest = max(counts, key=lambda group: counts[group])
        counts[largest] -= 1
    return {
        group: aim
        if counts[group] == aim.count
        else replace(aim, count=counts[group], reason=f"{aim.reason}; {max_replicas} at most for its deployment")
        for group, aim in aims.items()
    }, limit


def _serving(own: Sequence[Launched], version: str, ready: frozenset[ReplicaName]) -> tuple[Launched, ...]:
    """The replicas of a group that run its version or will; those that announce themselves first, then by state and
    index, so that the last ones are missed least."""
    order = (LaunchState.RUNNING, LaunchState.STARTING, LaunchState.WAITING)
    found = [each for each in own if each.spec.version == version and each.state in order]
    return tuple(sorted(found, key=lambda each: (each.name not in ready, order.index(each.state), each.name.index)))


def _ready(sight: Sight) -> frozenset[ReplicaName]:
    """The launched replicas that take jobs, by what they announce."""
    announced = {each.worker for each in sight.presences or () if not each.draining}
    return frozenset(each.name for each in sight.launched or () if each.announced in announced)


def _drains(each: Launched) -> bool:
    return each.state is LaunchState.STOPPING


def _remembered(sight: Sight, memory: Memory, *, now: float, pace: Pace) -> tuple[Memory, str]:
    """The memory after a look at what is there, and why nothing may be stopped now; empty when stops are allowed."""
    launched = sight.launched or ()
    versions = {group: of.spec.version for group in _by_group(launched) if (of := meant(sight.snapshot, group))}
    unknown = {
        (each.name, each.incarnation): memory.unknown.get((each.name, each.incarnation), 0) + 1
        for each in launched
        if not _drains(each) and versions.get(each.name.group) != each.spec.version
    }
    memory = replace(memory, unknown=unknown)
    if sight.presences is None or sight.run_id is None:
        return memory, "which workers announce themselves is not known"
    announced = {each.worker for each in sight.presences}
    present = frozenset(each.name for each in launched if each.announced in announced)
    expected = memory.seen & {each.name for each in launched if each.state is LaunchState.RUNNING}
    missing = bool(expected) and 2 * len(expected - present) >= len(expected)
    is_new_run = sight.run_id != memory.run_id
    held_until = now + pace.hold_s if is_new_run or (missing and not memory.missing) else memory.held_until
    seen = (memory.seen & {each.name for each in launched}) | present
    memory = replace(memory, run_id=sight.run_id, held_until=held_until, seen=seen, missing=missing)
    return memory, "presences may have been lost: nothing is stopped until they are back" if now < held_until else ""


def _unknown(launched: Sequence[Launched], looks: Mapping[tuple[ReplicaName, str], int], pace: Pace) -> list[Stop]:
    reason = f"the registry has not known {{version}} in its deployment for {pace.unknown_looks} looks"
    return [
        Stop(name=each.name, incarnation=each.incarnation, reason=reason.format(version=each.spec.version))
        for each in launched
        if not _drains(each) and looks.get((each.name, each.incarnation), 0) >= pace.unknown_looks
    ]


def _by_turns(lists: Sequence[Sequence[T]]) -> Iterator[T]:
    """The first of each list, then the second of each."""
    for index in range(max(map(len, lists), default=0)):
        yield from (each[index] for each in lists if index < len(each))
