"""The state of a fleet as its leader reports it, for people and programs. Knows no service that carries it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from axon.domain.fleet.reconcile import GroupState
from axon.domain.fleet.replica import Launched, LaunchState

MAX_REPLICAS = 2_000
"""Replicas that a report names; it counts all of them."""


class ReplicaState(StrEnum):
    """A replica's state, by its launcher and by what it announces."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    WAITING = "waiting"
    """It ended by itself, and is started again after a delay."""
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStatus:
    """One launched replica."""

    name: str
    deployment: str
    version: str
    pool: str = ""
    state: ReplicaState
    since: float
    restarts: int = 0
    zone: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One order that a leader gave."""

    at: float
    """Unix time."""
    action: str
    """``ensure`` or ``stop``."""
    replica: str
    reason: str
    error: str = ""
    """Why the launcher did not take it; empty when it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """A report of one look at the fleet."""

    v: int = 1
    at: float
    """Unix time of the look."""
    leader: str
    term: int
    launcher: str
    groups: tuple[GroupState, ...] = ()
    replicas: tuple[ReplicaStatus, ...] = ()
    num_replicas: int = 0
    decisions: tuple[Decision, ...] = ()
    """The last ones, the newest first."""
    held: str = ""
    """Why nothing is stopped; empty when replicas may be."""
    problem: str = ""
    """Why the look was not finished; empty when it was."""


_DECODER = msgspec.msgpack.Decoder(FleetStatus)


def encode(status: FleetStatus) -> bytes:
    """A report as it is sent."""
    return msgspec.msgpack.encode(status)


def decode(value: bytes) -> FleetStatus | None:
    """A report that was sent, without the fields of a later release; None for one that cannot be read."""
    try:
        return _DECODER.decode(value)
    except msgspec.DecodeError:
        return None


def replica_status(each: Launched, announced: Mapping[str, bool]) -> ReplicaStatus:
    """A launched replica; ``announced`` says of each worker that announces itself whether it drains."""
    name, group = str(each.name), each.name.group
    states = {
        LaunchState.STOPPING: ReplicaState.DRAINING,
        LaunchState.WAITING: ReplicaState.WAITING,
        LaunchState.LOST: ReplicaState.LOST,
        LaunchState.STARTING: ReplicaState.STARTING,
    }
    running = {None: ReplicaState.STARTING, False: ReplicaState.READY, True: ReplicaState.DRAINING}
    return ReplicaStatus(
        name=name,
        deployment=group.deployment,
        version=each.spec.version,
        pool=group.pool,
        state=states.get(each.state) or running[announced.get(each.announced)],
        since=each.since,
        restarts=each.restarts,
        zone=each.zone,
        problem=each.problem,
    )


def by_deployment(groups: Iterable[GroupState]) -> Mapping[str, tuple[GroupState, ...]]:
    """The groups of each deployment."""
    found: dict[str, tuple[GroupState, ...]] = {}
    for each in groups:
        found[each.group.deployment] = (*found.get(each.group.deployment, ()), each)
    return found
