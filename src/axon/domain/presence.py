"""A worker's announcement of itself: its name, its deployment and its load. Knows no service that carries it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from axon.domain.model.served_version import ServedVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What a run of a worker has served since it began; replays and what the cache held are not counted."""

    jobs: int = 0
    """Choices that have had a first token."""
    prompt_tokens: int = 0
    answer_tokens: int = 0
    ttft_s: float | None = None
    """95th percentile over the last minute of the time from a request to its first token; None without any."""
    itl_s: float | None = None
    """95th percentile over the last minute of the time between two steps of the engine with work; None without any."""
    taken_jobs: int = 0
    """Choices of the jobs that were taken for the first time, whether they have begun or not."""
    taken_prompt: float = 0.0
    """Tokens of their prompts, without the part that caches usually hold."""
    expected_tokens: float = 0.0
    """Predicted tokens of their answers, by each route's and tenant's own lengths."""
    pending_prompt: float = 0.0
    """Prompt tokens, likewise, of the choices that were taken and have no token yet."""
    remaining_tokens: float | None = None
    """Predicted tokens that the answers which run have left; None from a worker that does not report it."""
    prefill_per_s: float | None = None
    """Prompt tokens per second beside full decoding, by what steps cost; None while unknown."""
    decode_per_s: float | None = None
    """Answer tokens per second with every slot taken, by what steps cost; None while unknown."""
    kv_use: float | None = None
    """Used KV blocks over all of them; None while unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantActivity:
    """What a run of a worker does for one tenant."""

    tenant: str
    running: int = 0
    """Choices that run, or wait inside the worker."""
    prompt_tokens: int = 0
    """Prompt tokens computed since the worker began, or since it last forgot the tenant: it forgets the one that was
    served longest ago."""
    answer_tokens: int = 0
    """Answer tokens computed since then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """One GPU of a worker, as its engine last read it."""

    index: int
    utilization: float
    """Share of the time in which it ran something, 0 to 1."""
    memory_bytes: int
    """Memory in use, by whomever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What a run of a worker does, for people who watch. Nothing is decided by it."""

    running: int = 0
    """Choices that run, or wait inside the worker."""
    ttft_counts: tuple[int, ...] = ()
    """Times from a request to its first token since the worker began, counted by the buckets of
    ``domain/histogram.py``; zeros at the end are left out."""
    gap_counts: tuple[int, ...] = ()
    """Times between two steps that gave tokens, likewise, each counted once for every stream that went on."""
    tenants: tuple[TenantActivity, ...] = ()
    """The tenants with most that runs, then those served last; not all of them where there are many."""
    gpus: tuple[GpuUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Load of an engine."""

    slots: int
    """Largest number of sequences that run at once."""
    free_slots: int
    num_tokens: int
    """Tokens of the running sequences: prompts, and answers so far."""
    tokens_per_s: float = 0.0
    """Throughput in tokens per second with every slot taken, prompts and answers; 0 while unknown."""
    service: Service = field(default_factory=Service)
    activity: Activity = field(default_factory=Activity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """One announcement; a worker repeats it about every second."""

    v: int = 1
    worker: str
    """The worker's name, which survives a restart and is unique in its deployment."""
    incarnation: str
    """Id of this run of the worker: it owns the jobs and holds the lease."""
    deployment: ServedVersion
    """The served deployment, complete enough for a gateway to accept requests for it."""
    load: Load
    pool: str = ""
    """The worker's pool; empty for the shared one."""
    zone: str = ""
    """Zone that the worker runs in; empty where there is one zone."""
    draining: bool = False
    """Whether it finishes its jobs and takes no new ones."""
    at: float
    """Unix time of the announcement."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a later version, kept as they came."""


def service_rate(presences: Sequence[Presence]) -> float | None:
    """Throughput of all workers together in tokens per second. A worker without a measurement counts as the mean of the
    others; None while none has been measured."""
    rates = [presence.load.tokens_per_s for presence in presences if not presence.draining]
    known = [rate for rate in rates if rate > 0]
    return sum(known) / len(known) * len(rates) if known else None
