"""The worker's section of the settings."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """Off the queue, into the engine, out to the log."""

    name: str = field(default="", metadata={"default": "from the host, the data folder and a free place in it"})
    """Its name in the fleet, the same after a restart; no two workers of a model may have one."""
    pool: str = ""
    """The pool it works for: it takes the jobs of the tenants that have this pool, and no others. Empty: the pool that
    everybody shares."""
    metrics_host: str = "127.0.0.1"
    """Address of the metrics and probes of ``axon worker``."""
    metrics_port: int = 8002
    """Port of /metrics, /livez and /readyz of ``axon worker``; 0 takes a free one."""
    announce_s: float = 1.0
    """How often it says that it is there; silent for three times as long, it is not counted on."""
    lease_s: float = 1.5
    """A worker that has not renewed its lease for so long is taken for dead."""
    renew_s: float = 0.5
    """How often the lease is renewed."""
    stall_timeout_s: float = 30.0
    """An event loop that has not moved for so long is taken for hung: its lease is renewed no more."""
    engine_start_timeout_s: float = 120.0
    """An engine that is not ready by then, or makes no first step within it, is taken for broken."""
    step_timeout_s: float = 30.0
    """An engine that has work and makes no step for so long, or ten times its longest step, is killed and replaced."""
    linger_s: float = 2.0
    """A worker that is to end waits so long for what runs; what takes longer goes on at another worker."""
    crowded_s: float = 3.0
    """A job that has had no place in the engine's steps for so long, for want of blocks or because it was not its turn,
    goes to another worker that has room."""
    strike_limit: int = 2
    """A job that crashed the engine so often, alone in it and without gaining a token, is ended as failed."""
    checkpoint_s: float = 5.0
    """How often what long answers have said so far is written to the journal."""
