"""One look at a server: its gateway, workers, models, queues and tenants, as the admin API answers it. Values only.

Counters grow from the start of the process that counts them; whoever reads makes rates of two looks. Every list is
bounded, and the number beside it counts all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from axon.domain.presence import GpuUse, TenantActivity

MAX_WORKERS = 256
MAX_MODELS = 512
MAX_QUEUES = 512
MAX_TENANTS = 128
MAX_GATEWAYS = 64
MAX_VERSIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Durations by bucket since the process began: one more count than bounds, for those above the highest."""

    bounds: tuple[float, ...] = ()
    """Upper bounds in seconds."""
    counts: tuple[int, ...] = ()
    """Durations counted in each bucket, not cumulative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayLook:
    """The gateway process that answers, and nothing of the others."""

    name: str
    """Its id, another one after a restart: counters of two looks compare only under the same."""
    version: str = ""
    """The release of Axon that it runs."""
    up_s: float = 0.0
    """Seconds since it began."""
    draining: bool = False
    streams: int = 0
    """Streams that it writes to readers now."""
    sockets: int = 0
    """WebSockets that are open."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """Requests answered, by outcome."""
    rejected: int = 0
    """Requests that admission turned away."""
    ttft: Durations = Durations()
    """From a request's arrival to the first token that was sent."""
    gaps: Durations = Durations()
    """Between two tokens of one stream, as they were sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlLook:
    """Control's leader, by its last report."""

    leader: str
    launcher: str = ""
    age_s: float = 0.0
    num_replicas: int = 0
    problem: str = ""
    held: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLook:
    """One worker of the fleet, as it last announced itself."""

    name: str
    incarnation: str
    """Id of its run: its counters compare only under the same."""
    model: str
    """Name of the deployment that it serves."""
    version: str
    pool: str = ""
    zone: str = ""
    draining: bool = False
    can_drain: bool = True
    """Whether its process takes an order to drain; a part of `axon serve` takes none."""
    at: float
    """Unix time of the announcement, by the worker's own clock."""
    age_s: float = 0.0
    slots: int = 0
    free_slots: int = 0
    running: int = 0
    """Choices that run, or wait inside the worker."""
    num_tokens: int = 0
    """Tokens of the sequences that run: prompts, and answers so far."""
    requests: int = 0
    """Choices that have had a first token."""
    prompt_tokens: int = 0
    """Prompt tokens computed; those from the cache are not counted."""
    answer_tokens: int = 0
    kv_use: float | None = None
    """Used KV blocks over all of them, 0 to 1; None while unknown."""
    ttft_counts: tuple[int, ...] = ()
    """From a request to its first token, by the overview's ``bounds``."""
    gap_counts: tuple[int, ...] = ()
    """Between two tokens of one stream, likewise."""
    tenants: tuple[TenantActivity, ...] = ()
    """The busiest ones there."""
    gpus: tuple[GpuUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionLook:
    """One version of a model."""

    version: str
    state: str = ""
    workers: int = 0
    draining: int = 0
    is_stable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLook:
    """One model (a deployment) that the gateway offers."""

    name: str
    state: str
    """``ready``, ``loading``, ``cold`` or ``failed``; ``unknown`` before a worker or a version was ever seen."""
    versions: tuple[VersionLook, ...] = ()
    workers: int = 0
    draining: int = 0
    wanted: int | None = None
    """Replicas that control wants; None where control runs none."""
    starting: int | None = None
    """Replicas that control has started and that are not ready; None likewise."""
    ready: int | None = None
    """Replicas that are ready by control's report; None likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLook:
    """The turns of all gateways that wait for the workers of one pool."""

    model: str
    pool: str = ""
    requests: int = 0
    tokens: float = 0.0
    """Tokens that are set aside for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLook:
    """Counters of one tenant at this gateway."""

    tenant: str
    requests: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """One look. ``gateway`` and ``tenants`` are of the gateway that answers; everything else is of the fleet."""

    object: str = "overview"
    at: float
    """Unix time of the answer."""
    gateway: GatewayLook
    gateways: tuple[str, ...] = ()
    """Ids of the gateways that have announced themselves within the last seconds, this one included."""
    num_gateways: int = 1
    control: ControlLook | None = None
    """None where no control with a launcher leads."""
    bounds: tuple[float, ...] = ()
    """Upper bounds in seconds of the workers' buckets."""
    workers: tuple[WorkerLook, ...] = ()
    num_workers: int = 0
    models: tuple[ModelLook, ...] = ()
    num_models: int = 0
    queues: tuple[QueueLook, ...] = ()
    num_queues: int = 0
    tenants: tuple[TenantLook, ...] = ()
    num_tenants: int = 0
    problems: tuple[str, ...] = ()
    """What could not be read, in words; the rest stands."""
