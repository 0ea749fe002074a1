"""A rollout: new sessions go to a new version in steps. The values and the bucket; knows no worker and no metric."""

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

from axon.domain.registry.golden import Golden
from axon.domain.registry.tolerance import Tolerance

WHOLE = 10_000
"""A rollout's share is counted in hundredths of a percent."""

STEPS = (100, 1000, 5000, WHOLE)
"""Shares of a rollout that names none."""


class RolloutState(StrEnum):
    """State of a rollout."""

    WAITING = "waiting"
    """The new version is not ready yet in every pool that it serves."""
    RUNNING = "running"
    PAUSED = "paused"
    PROMOTED = "promoted"
    """The new version has become the stable one."""
    ROLLED_BACK = "rolled_back"
    """Taken back by hand: new sessions begin on the old version, those of the new one stay on it."""
    ABORTED = "aborted"
    """The new version erred or was slower: what becomes of its sessions depends on the reason."""

    @property
    def is_over(self) -> bool:
        return self in (RolloutState.PROMOTED, RolloutState.ROLLED_BACK, RolloutState.ABORTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One rollout of a deployment. Running it again is another rollout, with another id."""

    id: str
    """Salt of the buckets: the same in all its steps, so that a session's bucket never changes."""
    old: str
    """Id of the stable version when it began."""
    new: str
    steps: tuple[int, ...] = STEPS
    """Shares of new sessions that the new version gets, one after the other, in hundredths of a percent."""
    step: int = 0
    """Index of the present step."""
    bake_s: float = 300.0
    """Seconds that each step lasts at least; 0 steps by hand only."""
    state: RolloutState = RolloutState.WAITING
    began: float
    stepped: float = 0.0
    """Unix time at which its present step began."""
    reason: str = ""
    """Why it ended, or why it waits."""
    golden: tuple[Golden, ...] = ()
    """Prompts that the new version must answer as expected before any session begins on it."""
    tolerance: Tolerance = field(default_factory=Tolerance)
    """How much worse than the old version the new one may be."""

    @property
    def share(self) -> int:
        """The share of new sessions that begin on the new version now, in hundredths of a percent."""
        runs = self.state in (RolloutState.RUNNING, RolloutState.PAUSED)
        return self.steps[self.step] if runs else 0


def bucket_of(rollout_id: str, key: str) -> int:
    """The bucket of a session in a rollout, 0 to 9,999: the same in every process, evenly spread over keys."""
    digest = hashlib.sha256(f"{rollout_id}\0{key}".encode()).digest()
    return int.from_bytes(digest[:8]) % WHOLE
