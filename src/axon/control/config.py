"""Control's section of the settings."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlConfig:
    """Control: recovery, deadlines and retention."""

    metrics_host: str = "127.0.0.1"
    """Address of the metrics and probes of ``axon control``."""
    metrics_port: int = 8003
    """Port of /metrics, /livez and /readyz of ``axon control``; 0 takes a free one."""
    lease_s: float = 1.5
    """Seconds after which a leader that has not renewed its lease is replaced by a standby."""
    sweep_s: float = 1.0
    """Seconds between two checks of deadlines, orphans and retention."""
    orphan_s: float = 30.0
    """Seconds without an owner after which a turn whose lane is empty is put on the queue again."""
    launcher: Literal["none", "process", "kubernetes", "external"] = "none"
    """Who starts and stops the workers of registered deployments: ``none`` leaves it to you; ``process`` runs them as
    processes of this machine, in ``data_dir``; ``kubernetes`` scales Deployments and LeaderWorkerSets of a
    cluster; ``external`` only recommends a number, as the metric ``axon_replicas``, for KEDA or an HPA."""
    kubernetes_namespace: str = "default"
    """Namespace that the launcher ``kubernetes`` works in."""
    kubernetes_template: str = ""
    """File with the pod template of a worker (YAML), for the launcher ``kubernetes``; its first container gets the
    arguments."""
    kubernetes_server: str = field(default="", metadata={"default": "the pod's own cluster"})
    """Address of the cluster's API without a sign-in, such as that of `kubectl proxy`."""
    look_s: float = 1.0
    """Seconds between two looks of the leader at the fleet, if it has a launcher."""
    target_wait_s: float = 2.0
    """Seconds in which a waiting request shall be taken: a launcher's workers become more if it takes longer."""
    ttft_target_s: float = 2.0
    """Seconds to the first token that shall not be exceeded by more than a tenth, if more workers help."""
    itl_target_s: float = 0.05
    """Seconds between two tokens that shall not be exceeded by more than a tenth, if more workers help."""
    scale_s: float = 2.0
    """Seconds between two decisions on the number of a deployment's workers."""
    quiet_s: float = 600.0
    """Seconds for which little must have waited before workers become fewer."""
    hold_s: float = 60.0
    """Seconds for which fewer workers must have sufficed before they become fewer; at least two cold starts."""
    memory_bytes: int = 0
    """Memory that the workers of the launcher ``process`` may have together: if not all models fit, they are swapped.
    0 for no bound."""
    swap_wait_s: float = 10.0
    """Seconds for which requests for a model wait at most before a busy model makes room for it."""
    swap_run_s: float = 5.0
    """Seconds for which a model that was started stays, whoever waits."""
    max_swaps: int = 12
    """Models that make room for others in a minute at most."""
    min_drain_s: float = 3600.0
    """Seconds for which an old version stays at least after a rollout, so that `axon rollback` finds it running."""
    max_drain_s: float = 7 * 24 * 3600.0
    """Seconds for which an old version stays at most while sessions are pinned to it; then they are moved."""
