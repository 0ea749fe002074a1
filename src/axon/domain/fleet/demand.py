"""Demand: the work of one group of replicas that was accepted and has not ended. Knows no queue and no store."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from axon.domain.tenants.tenant import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is asked of the replicas of one version in one pool. None stands for what could not be read."""

    waiting: int | None = None
    """Jobs in its lanes."""
    tiers: Mapping[Tier, int] = field(default_factory=dict)
    """Those jobs by tier; jobs that are in no tier's count belong to the default one."""
    unfinished: int | None = None
    """Accepted turns that have not ended, as far as they are in the store: waiting ones and running ones."""
    last_asked: float | None = None
    """Unix time of the last request for its deployment."""

    @property
    def waiting_by_tier(self) -> Mapping[Tier, int]:
        """All jobs in its lanes by tier, as far as they are known."""
        rest = (self.waiting or 0) - sum(self.tiers.values())
        return {**self.tiers, Tier.DEFAULT: self.tiers.get(Tier.DEFAULT, 0) + rest} if rest > 0 else self.tiers

    @property
    def is_known(self) -> bool:
        """Whether it can be told that there is some, or that there is none."""
        return bool(self) or (self.waiting is not None and self.unfinished is not None)

    def __bool__(self) -> bool:
        """Whether there is some, as far as is known: look at ``is_known`` before you take it for none."""
        return bool(self.waiting or self.unfinished)

    def idle_s(self, now: float) -> float | None:
        """Seconds without a request; None if that is not known, 0 while there is work."""
        if self:
            return 0.0
        return None if self.last_asked is None else max(0.0, now - self.last_asked)

    def __str__(self) -> str:
        waiting, unfinished = ("?" if each is None else each for each in (self.waiting, self.unfinished))
        return f"{waiting} jobs wait, {unfinished} turns are unfinished"
