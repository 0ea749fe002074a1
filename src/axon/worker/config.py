"""The worker's section of the settings."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """Settings of a worker: taking jobs off the queue, running them in its engine, and showing that it lives."""

    name: str = field(default="", metadata={"default": "from the host, the data folder and a free place in it"})
    """The worker's name in the fleet, the same after a restart. No two workers of a model may have the same name."""
    pool: str = ""
    """The worker takes the jobs of tenants that have this pool, and no others. Empty is the pool that everybody
    shares."""
    neighbours: str = ""
    """Names of other deployments whose engines share this worker's cores, separated by commas: what a tenant is served
    here counts for its share there too. ``axon serve`` knows those of its own process."""
    deployment: str = ""
    """Name of a registered deployment that the worker serves, in place of ``model``."""
    version: str = ""
    """Label of the version of the deployment that it serves; empty takes the one that needs a worker most, and another
    one when that is removed."""
    host_index: int = 0
    """Place of this host among ``engine.hosts``: 0 leads and takes jobs, the others are ranks of its engine."""
    metrics_host: str = "127.0.0.1"
    """Address of the metrics and probes of ``axon worker``."""
    metrics_port: int = 8002
    """Port of /metrics, /livez and /readyz of ``axon worker``; 0 takes a free one."""
    announce_s: float = 1.0
    """Seconds between two announcements of the worker. Gateways forget one that was silent for three times as long."""
    lease_s: float = 1.5
    """A worker that has not renewed its lease for this long counts as dead: others take over its jobs."""
    renew_s: float = 0.5
    """Seconds between two renewals of the lease."""
    stall_timeout_s: float = 30.0
    """An event loop that has not run for this long counts as hung: the worker's lease is renewed no more."""
    engine_start_timeout_s: float = 120.0
    """An engine that is not ready after this long, or makes no first step within it, is killed and replaced."""
    spare_engine: bool = True
    """Keeps one engine process ready, with everything imported and no model loaded, which takes over when an engine
    dies. It needs about 40 MB of memory for ``int8`` on a CPU; where less than 1 GiB is free, there is none."""
    step_timeout_s: float = 30.0
    """An engine with work that makes no step for this long, or ten times its longest step, is killed and replaced."""
    adapter_timeout_s: float = 300.0
    """Turns wait this long for the files of a LoRA adapter; the next ones that name it go on with what was fetched."""
    linger_s: float = 2.0
    """A worker that drains waits this long for its jobs to end; longer ones go on at another worker."""
    crowded_s: float = 3.0
    """A job that has had no place in the engine's steps for this long, because KV blocks or slots were missing, goes on
    at another worker that has free slots."""
    strike_limit: int = 3
    """A job that was in this many crashes of an engine, in the last one alone and without gaining a token, is ended as
    failed."""
    gather_s: float = 0.03
    """Beside more than two jobs, tokens in the middle of streams go out together, once in so many seconds at most: each
    time takes processor time from the engine. A stream's first token and its end never wait. 0 sends the tokens of each
    step at once."""
    checkpoint_s: float = 5.0
    """Seconds between two writes of a long answer's tokens so far to the journal."""
