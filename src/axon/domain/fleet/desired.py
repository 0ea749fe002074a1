"""What the registry wants to run: the groups of a deployment, their specs, and their least number of replicas. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from axon.domain.fleet.replica import Group, LaunchState, ReplicaSpec
from axon.domain.fleet.sight import Sight, Target
from axon.domain.registry.deployment import Deployment, Member
from axon.domain.registry.served import RUNNING, version_to_serve
from axon.domain.registry.snapshot import Snapshot

_RANKS = "tensor_parallel"
"""The engine's setting that says how many processes compute one replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A version of a deployment, as its replicas are launched."""

    deployment: Deployment
    member: Member
    spec: ReplicaSpec

    @property
    def may_start(self) -> bool:
        """Whether replicas of it may be started; those of a failed or closed version are only let go."""
        return self.member.state in RUNNING


def wanted(snapshot: Snapshot) -> Mapping[Group, Wanted]:
    """Every group that the registry knows, in the pool that its deployment runs in."""
    return {
        Group(deployment.name, member.letter, deployment.pool): each
        for deployment in snapshot.deployments.values()
        for member in deployment.members
        if (each := _wanted(snapshot, deployment, member)) is not None
    }


def meant(snapshot: Snapshot, group: Group) -> Wanted | None:
    """The version that a group's name means now, whatever its pool; None when there is none."""
    deployment = snapshot.deployments.get(group.deployment)
    members = deployment.members if deployment else ()
    member = next((each for each in members if each.letter == group.letter), None)
    return _wanted(snapshot, deployment, member) if deployment and member else None


def _wanted(snapshot: Snapshot, deployment: Deployment, member: Member) -> Wanted | None:
    version = snapshot.versions.get(member.version)
    if version is None:
        return None
    ranks = dict(version.settings.more).get(_RANKS, "1")
    spec = ReplicaSpec(
        version=version.id,
        label=version.label,
        memory_bytes=deployment.memory_bytes,
        devices=deployment.devices,
        ranks=int(ranks) if ranks.isdecimal() else 1,
    )
    return Wanted(deployment=deployment, member=member, spec=spec)


@dataclass(frozen=True, slots=True)
class Idle:
    """Since when groups have had no demand, by the clock of whoever looks."""

    since: Mapping[Group, float] = field(default_factory=dict)


def least(sight: Sight, idle: Idle, *, now: float, at: float) -> tuple[Mapping[Group, Target], Idle]:
    """The targets of a fleet without an autoscaler: the least that each deployment asks for, and what it must have
    because somebody waits. ``now`` is in seconds of a monotonic clock, ``at`` is the Unix time; give the result back at
    the next look."""
    groups = wanted(sight.snapshot)
    since = {
        group: idle.since.get(group, now)
        for group in groups
        if (demand := sight.demand_of(group)) is not None and not demand
    }
    targets: dict[Group, Target] = {}
    for deployment in sight.snapshot.deployments.values():
        shares = _shares(deployment, at)
        own = {group: each for group, each in groups.items() if each.deployment is deployment and each.may_start}
        for group, each in own.items():
            count = shares[each.member.version]
            targets[group] = (
                Target(count, _why(deployment, at))
                if count
                else _cold(sight, group, each, idle_s=now - since.get(group, now))
            )
    return targets, Idle(since)


def _shares(deployment: Deployment, at: float) -> Counter[str]:
    """The least number of replicas by version: one of each that runs, and the rest by their parts of new sessions."""
    served: list[str] = []
    asked = deployment.least_replicas(at)
    if deployment.may_be_cold and not asked:
        return Counter()
    num_running = sum(member.state in RUNNING for member in deployment.members)
    for _ in range(max(asked, num_running)):
        served.append(version_to_serve(deployment, served))
    return Counter(served)


def _why(deployment: Deployment, at: float) -> str:
    if (by_clock := deployment.scaling.least(at)) > deployment.min_replicas:
        return f"its deployment asks for {by_clock} at least at this time of the day"
    if deployment.hot:
        return "its deployment is hot"
    if deployment.min_replicas:
        return f"its deployment asks for {deployment.min_replicas} at least, and one of each version"
    return "its deployment never goes cold"


def _cold(sight: Sight, group: Group, each: Wanted, *, idle_s: float) -> Target:
    """The target of a group that may have no replica."""
    runs, rollout = any(_is_run(sight, group)), each.deployment.rollout
    demand, limit_s = sight.demand_of(group), each.deployment.idle_s
    if rollout and not rollout.state.is_over and rollout.new == each.member.version:
        return Target(1, "it is rolled out")
    if demand is None:
        return Target(int(runs), "its demand is not known")
    if demand:
        return Target(1, str(demand))
    if runs and idle_s < limit_s:
        return Target(1, f"idle for less than {limit_s:g} s")
    return Target(0, f"idle for {limit_s:g} s" if runs else "cold, and nobody waits for it")


def _is_run(sight: Sight, group: Group) -> Iterator[bool]:
    return (each.name.group == group and each.state is not LaunchState.STOPPING for each in sight.launched or ())
