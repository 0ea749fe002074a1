"""Which lane of a deployment a tenant's jobs wait in: a fixed number, chosen by hash, never deleted."""

import zlib


def lane_names(deployment: str, num_lanes: int) -> tuple[str, ...]:
    """All lanes of a deployment."""
    return tuple(f"{deployment}/{index:02d}" for index in range(num_lanes))


def lane_of(tenant: str, deployment: str, num_lanes: int) -> str:
    """The tenant's lane; the same in every process and release."""
    return f"{deployment}/{zlib.crc32(tenant.encode()) % num_lanes:02d}"
