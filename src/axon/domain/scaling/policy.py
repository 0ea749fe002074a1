"""The autoscaler's policy: targets, bounds and hysteresis of one group. Values only: it decides nothing."""

from dataclasses import dataclass
from math import isfinite

from axon.domain.scaling.finite import amount, count
from axon.domain.tenants.tenant import Tier
from axon.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPolicy:
    """How one group is scaled. The defaults are the ones that `docs/scaling.md` was measured with."""

    min_replicas: int = 1
    max_replicas: int = 10
    """Both follow the clock and the ceiling in cost of the deployment: whoever makes the policy says what holds now."""
    hot: bool = False
    """Whether the group always keeps a replica, however long it was idle."""
    idle_s: float = 0.0
    """Seconds without a request after which the last replica may go; 0 for never."""
    ttft_target_s: float = 2.0
    itl_target_s: float = 0.05
    latency_limit: float = 1.1
    """A latency above its target times this calls for another replica."""
    attainment: float = 0.95
    """A fraction of turns within their targets below this calls for another replica."""
    target_wait_s: float = 2.0
    """Seconds in which waiting work shall be taken; ``flex_wait_s`` for jobs of the flex tier."""
    flex_wait_s: float = 60.0
    refused_s: float = 30.0
    """Seconds of waiting from which admission refuses requests, of which nobody tells; 0 where it refuses none."""
    backlog_up: float = 1.2
    """Up when the backlog is over what the ready replicas clear in the target wait, times this."""
    backlog_down: float = 0.3
    """Down only after the backlog was below what they clear, times this, for ``quiet_s``."""
    quiet_s: float = 600.0
    large_excess: float = 0.1
    """A group that has this part of its replicas too many, and at least two, lets them go after ``hold_s`` already; the
    square root of its replicas suffices in a large group. 1 for never before ``quiet_s``."""
    utilisation_low: float = 0.7
    """No replica is taken away if the others would then be used above the middle of low and high."""
    utilisation_high: float = 0.8
    """A group whose expected utilisation is above this gets another replica."""
    kv_high: float = 0.9
    """A group whose KV blocks are used above this gets another replica."""
    hold_s: float = 60.0
    """Least time for which the load must have been low before a replica goes. It is at least twice the cold-start time:
    to keep a replica is cheaper than to start it again soon (ski rental)."""
    cold_start_s: float = 60.0
    """Cold-start time until one was measured."""
    look_s: float = 2.0
    """Seconds between two looks."""
    growth_limit: float = 4.0
    """A forecast is at most the present load times this."""
    learns_wave: bool = False
    """Whether the load's daily wave is learned and forecast."""

    @property
    def least(self) -> int:
        """The least number of replicas, before any ceiling."""
        return max(count(self.min_replicas), int(self.hot))

    @property
    def most(self) -> int:
        """The largest number of replicas."""
        return count(self.max_replicas)

    def wait_s(self, tier: Tier) -> float:
        """Seconds in which a job of the tier shall be taken."""
        return max(0.1, amount(self.flex_wait_s if tier is Tier.FLEX else self.target_wait_s))

    def check(self) -> None:
        """Raises ``InvalidInput`` for numbers that cannot work."""
        if not 0 <= self.min_replicas <= self.max_replicas:
            raise InvalidInput("The least replicas must be between 0 and the most.", param="min_replicas")
        if not 0 < self.utilisation_low <= self.utilisation_high < 1:
            raise InvalidInput("Utilisation low and high must rise and lie between 0 and 1.", param="utilisation_low")
        if not 0 < self.backlog_down < self.backlog_up:
            raise InvalidInput("The backlog's limit down must be above 0 and below the one up.", param="backlog_down")
        positives = ("ttft_target_s", "itl_target_s", "target_wait_s", "flex_wait_s", "look_s", "growth_limit")
        for name in positives:
            if not (isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InvalidInput(f"{name} must be a number above 0.", param=name)
