"""Names of lanes (queues). Each tier and pool of a deployment has a fixed number of them, never deleted.

small/07   small/priority/07   small/flex/07       taken by the shared workers
small#gold/07   …                                  taken by the workers of the pool ``gold``
small/@worker-1                                    a worker's own lane, for turns whose earlier turns it has cached
"""

import zlib

from axon.domain.tenant import Tier

_SETS = {Tier.PRIORITY: "priority/", Tier.DEFAULT: "", Tier.FLEX: "flex/"}


def pool_name(deployment: str, pool: str = "") -> str:
    """Name of one pool of a deployment's workers; their lanes and fair-share counters begin with it."""
    return f"{deployment}#{pool}" if pool else deployment


def lane_names(deployment: str, num_lanes: int, pool: str = "") -> tuple[str, ...]:
    """All lanes that the workers of a pool take from."""
    return tuple(_name(deployment, pool, tier, index) for tier in _SETS for index in range(num_lanes))


def lane_of(
    tenant: str,
    deployment: str,
    num_lanes: int,
    *,
    place: int | None = None,
    tier: Tier = Tier.DEFAULT,
    pool: str = "",
) -> str:
    """The tenant's lane, the same in every process and release. Tenants with consecutive places get different lanes;
    a tenant without a place gets one by the CRC-32 of its id."""
    number = zlib.crc32(tenant.encode()) if place is None else place
    return _name(deployment, pool, tier, number % num_lanes)


def tier_of(lane: str) -> Tier:
    """The tier of a lane's jobs."""
    kind = lane.rpartition("/")[0].rpartition("/")[2]
    return next((tier for tier, prefix in _SETS.items() if prefix == f"{kind}/"), Tier.DEFAULT)


def is_of_pool(lane: str, deployment: str, pool: str) -> bool:
    """Whether the workers of this pool take from the lane."""
    return lane.startswith(f"{pool_name(deployment, pool)}/")


def own_lane(deployment: str, worker: str) -> str:
    """The worker's own lane, by its stable name; no tenant's lane has such a name."""
    return f"{deployment}/@{worker}"


def _name(deployment: str, pool: str, tier: Tier, index: int) -> str:
    return f"{pool_name(deployment, pool)}/{_SETS[tier]}{index:02d}"
