"""What is known of a server that has started, for whoever shows it. Values only."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Facts about a running server for the terminal."""

    url: str
    metrics_url: str
    key: str | None
    """The development key's text, on the start that created it."""
    key_file: Path
    models: tuple[str, ...]
    pid: int
    waits: bool = False
    """Whether it has seen no worker yet."""
    engine_pids: tuple[int, ...] = ()
    """Process ids of the engines, where this process has any."""
    num_fronts: int = 0
    """Number of processes that serve the port, where there are several."""
    grpc: str = ""
    """Address of the gRPC server; empty if there is none."""
