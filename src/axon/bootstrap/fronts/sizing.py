"""Decides how many processes serve a port, by the number of usable cores."""

from axon.gateway.config import GatewayConfig

_CORES_EACH = 4
"""Cores for each process, where the number is not set: most of a machine is the engine's."""
_MAX_PROCESSES = 4


def num_processes(config: GatewayConfig, num_cores: int) -> int:
    """The number that is set, else 1 below 8 cores and a quarter of them above."""
    if config.processes:
        return config.processes
    return 1 if num_cores < 2 * _CORES_EACH else min(_MAX_PROCESSES, num_cores // _CORES_EACH)
