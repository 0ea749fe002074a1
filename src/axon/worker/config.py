"""The worker's section of the settings."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """Off the queue, into the engine, out to the log."""

    name: str = field(default="", metadata={"default": "from the host, the data folder and a free place in it"})
    """Its name in the fleet, the same after a restart; no two workers of a model may have one."""
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
    engine_start_timeout_s: float = 120.0
    """An engine that is not ready by then is taken for broken."""
    step_timeout_s: float = 120.0
    """An engine that has work and makes no step for so long is killed and replaced."""
    strike_limit: int = 2
    """A job that crashed the engine so often, alone in it and without gaining a token, is ended as failed."""
