"""A replica: one worker that shall run, by a name that says what it serves. Knows no machine.

small#-0   small#gold-1        the first version's replicas, in the shared pool and in the pool ``gold``
small~b#-0                     a replica of the version with the letter ``b``
"""

import re
from dataclasses import dataclass
from enum import StrEnum

_NAME = re.compile(r"(?P<deployment>[^~#]+)(?:~(?P<letter>[a-z]))?#(?P<pool>[^#]*)-(?P<index>[0-9]+)")


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """The replicas of one version of a deployment in one pool: they are alike, and are counted together."""

    deployment: str
    letter: str = ""
    pool: str = ""

    def replica(self, index: int) -> "ReplicaName":
        """The name of one of its replicas."""
        return ReplicaName(self, index)

    def __str__(self) -> str:
        return f"{self.deployment}{'~' + self.letter if self.letter else ''}#{self.pool}"


@dataclass(frozen=True, slots=True, order=True)
class ReplicaName:
    """The name of a replica; whoever runs under it is replaced, not joined, by another run."""

    group: Group
    index: int

    def __str__(self) -> str:
        return f"{self.group}-{self.index}"


def parse_replica(text: str) -> ReplicaName | None:
    """The name that a text is; None for a text that is none, such as the name of a worker that nobody launched."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    group = Group(match["deployment"], match["letter"] or "", match["pool"])
    return ReplicaName(group, int(match["index"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSpec:
    """What a replica serves and needs: enough to start a worker."""

    version: str
    """Id of the version that it serves."""
    label: str
    """The version's label, as ``axon worker --version`` takes it."""
    memory_bytes: int = 0
    """Memory that it needs; 0 where that is not known."""
    devices: int = 0
    """GPUs that it needs."""
    ranks: int = 1
    """Processes that compute it together."""
    zone: str = ""
    """The zone that it is best placed in; empty for any."""


class LaunchState(StrEnum):
    """How far a launched replica is."""

    STARTING = "starting"
    RUNNING = "running"
    """Its process runs; whether it serves, its presence says."""
    STOPPING = "stopping"
    """It was told to stop and drains."""
    WAITING = "waiting"
    """It ended by itself, and is started again after a delay."""
    LOST = "lost"
    """Its machine does not answer: it is missing where replicas are needed, and its name is not given again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A replica as its launcher lists it."""

    name: ReplicaName
    incarnation: str
    """Id of this run: a process by pid and start time, a pod by its uid."""
    spec: ReplicaSpec
    state: LaunchState
    since: float
    """Unix time at which it entered its state."""
    restarts: int = 0
    """How often it was started again after it had ended by itself."""
    zone: str = ""
    problem: str = ""
    """Why it does not run, in words: the last line that it wrote, or what the cluster says."""
    worker: str = ""
    """Name under which its worker announces itself; empty where that is the replica's name."""

    @property
    def announced(self) -> str:
        """Name of its worker's presence."""
        return self.worker or str(self.name)
