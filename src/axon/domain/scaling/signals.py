"""Signals: what the autoscaler is told about one group at one look. Values only: whoever reads metrics fills them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from axon.domain.scaling.work import Speed, Work
from axon.domain.tenants.tenant import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRate:
    """Throughput of one tenant."""

    served: float = 0.0
    """Tokens per second that it was served."""
    promised: float = 0.0
    """Tokens per second that it shall get while it has work waiting; 0 for no promise."""
    is_waiting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """Measurements of one group (a deployment's version in a pool). None says that a figure is unknown."""

    ready: int = 0
    """Replicas that serve."""
    starting: int = 0
    """Replicas that were ordered and do not serve yet."""
    starting_age_s: float | None = None
    """Mean time since they were ordered, in seconds."""
    draining: int = 0
    """Replicas that finish or hand over their jobs and take no new ones."""
    slots: float = 0.0
    """Sequences that one replica runs at once."""
    arrived: Work | None = None
    """Work of the requests that came since the last look, per second; answers by their predicted lengths."""
    backlog: Mapping[Tier, Work] | None = None
    """Work of the jobs that wait for a replica."""
    demand: int | None = None
    """Unfinished turns, waiting and running."""
    idle_s: float | None = None
    """Seconds since the last request."""
    running: float = 0.0
    """Sequences that run now."""
    remaining: Work = field(default_factory=Work)
    """Work that is left of them, by their routes' and tenants' own lengths."""
    speed: Speed = field(default_factory=Speed)
    cold_start_s: float | None = None
    """Seconds from the order of a replica until it serves, as measured."""
    utilisation: float | None = None
    """Used slots over the slots of ready replicas."""
    kv_use: float | None = None
    """Used KV blocks over all of them."""
    ttft_s: float | None = None
    """95th percentile of the time to the first token over the last minute."""
    itl_s: float | None = None
    """95th percentile of the time between tokens over the last minute."""
    attainment: float | None = None
    """Fraction of the last minute's turns that met both targets."""
    tenants: Mapping[str, TenantRate] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether there is enough to decide on: without arrivals, backlog and demand nothing may change."""
        return self.arrived is not None and self.backlog is not None and self.demand is not None
