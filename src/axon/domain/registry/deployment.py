"""A deployment: what is to run under a name. It says which versions, how many replicas and where. Knows no worker."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from axon.domain.registry.rollout import Rollout
from axon.domain.registry.scaling import Scaling

LETTERS = "abcd"
"""Letters of the versions that a deployment may run at once; the first version's lanes have none in their names."""


_MAX_BEFORE = 4


class MemberState(StrEnum):
    """State of a version in a deployment. It goes down this list and never back, but for ``draining`` to ``ready``
    when a rollout to it starts again."""

    REGISTERED = "registered"
    """No worker has been ready with it yet."""
    READY = "ready"
    """New sessions may begin on it."""
    DRAINING = "draining"
    """Sessions that are pinned to it go on, and none begins."""
    FAILED = "failed"
    """It was aborted because it errs: its sessions are moved."""
    CLOSED = "closed"
    """No turn begins on it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One version of a deployment."""

    version: str
    """The version's id."""
    letter: str = ""
    """Its letter in the names of lanes; empty for a deployment's first version."""
    state: MemberState = MemberState.REGISTERED
    since: float = 0.0
    """Unix time at which it entered its state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreedLetter:
    """The letter of a version that has left the deployment."""

    letter: str
    at: float
    """Unix time at which the version left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A registered deployment."""

    name: str
    model: str
    members: tuple[Member, ...] = ()
    stable: str = ""
    """Id of the version that new sessions begin on, but for the part that a rollout gives to another one."""
    freed: tuple[FreedLetter, ...] = ()
    """Letters of versions that have left: a letter is given again only when no turn of its last version can run."""
    rollout: Rollout | None = None
    """The present or the last rollout."""
    min_replicas: int = 1
    max_replicas: int = 1
    """Control's launcher keeps to both, if it has one; two versions that run at once have a replica each at least."""
    scaling: Scaling = field(default_factory=Scaling)
    """What its autoscaler aims at and may spend, and minimums by the clock."""
    pool: str = ""
    """Pool of workers that runs it; empty for the shared one."""
    memory_bytes: int = 0
    """Memory of one replica; 0 for what it needs."""
    devices: int = 0
    """GPUs of one replica; 0 for the CPU."""
    idle_s: float = 0.0
    """Seconds without a request after which it may go cold; 0 for never."""
    hot: bool = False
    """Whether it never goes cold: at least one replica runs, whatever ``min_replicas`` and ``idle_s`` say."""
    cold_patience_s: float = 300.0
    """Seconds that a turn may wait for a first worker to start, beyond the time that a turn may take."""
    patience_s: float = 60.0
    """Seconds for which a version may have no worker before its sessions are moved to the stable version."""
    num_lanes: int = 32
    """Lanes of each tier and version."""
    fallbacks: tuple[str, ...] = ()
    """Deployments that answer in its place while it is unavailable or full, in this order."""
    created: float
    revision: int = 1

    @property
    def may_be_cold(self) -> bool:
        """Whether it may run nowhere until it is asked: it needs no replica, has a time after which it counts as idle,
        and is not hot."""
        return not self.hot and self.min_replicas == 0 and self.idle_s > 0

    def least_replicas(self, at: float) -> int:
        """Replicas that it has at least at a Unix time, before any ceiling."""
        return max(self.min_replicas, self.scaling.least(at))

    @property
    def most_replicas(self) -> int:
        """Replicas that it has at most: by their number, and by what they may cost."""
        payable = self.scaling.payable
        return self.max_replicas if payable is None else min(self.max_replicas, payable)

    def member(self, version: str) -> Member | None:
        """The member with this version's id."""
        return next((member for member in self.members if member.version == version), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another name for a deployment, which can be switched to another one."""

    name: str
    deployment: str
    before: tuple[str, ...] = ()
    """Deployments that it stood for before, the latest first: sessions that began there are moved, and told."""
    created: float
    revision: int = 1

    def switched(self, deployment: str) -> "Alias":
        """The alias for another deployment."""
        before = tuple(each for each in dict.fromkeys((self.deployment, *self.before)) if each != deployment)
        return replace(self, deployment=deployment, before=before[:_MAX_BEFORE])
