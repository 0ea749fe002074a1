"""Which lane of a deployment a tenant's jobs wait in: a fixed number, chosen by hash, never deleted.

Beside them each worker has a lane of its own, for turns that go on from what it holds.
"""

import zlib


def lane_names(deployment: str, num_lanes: int) -> tuple[str, ...]:
    """All lanes of a deployment."""
    return tuple(f"{deployment}/{index:02d}" for index in range(num_lanes))


def lane_of(tenant: str, deployment: str, num_lanes: int) -> str:
    """The tenant's lane; the same in every process and release."""
    return f"{deployment}/{zlib.crc32(tenant.encode()) % num_lanes:02d}"


def own_lane(deployment: str, worker: str) -> str:
    """The worker's own lane, by its stable name; no tenant's lane is called so."""
    return f"{deployment}/@{worker}"
