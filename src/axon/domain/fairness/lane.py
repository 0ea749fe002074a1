"""Names of lanes (queues). Each tier, pool and version of a deployment has a fixed number of them.

small/07   small/priority/07   small/flex/07       taken by the shared workers of a deployment's first version
small:b/07   …                                     taken by the workers of the version with the letter ``b``
small#gold/07   small:b#gold/07   …                taken by the workers of the pool ``gold``
small/@worker-1   small:b/@worker-1                a worker's own lane, for turns whose earlier turns it has cached
"""

import re
import zlib

from axon.domain.registry.deployment import LETTERS
from axon.domain.tenants.tenant import Tier

_SETS = {Tier.PRIORITY: "priority/", Tier.DEFAULT: "", Tier.FLEX: "flex/"}
_REST = re.compile(rf"(?::(?P<letter>[{LETTERS}]))?(?:#(?P<pool>[^/]+))?/(?:priority/|flex/)?[0-9]{{2,}}")
"""What follows a deployment's name in the name of a tenant's lane."""


def pool_name(deployment: str, pool: str = "", letter: str = "") -> str:
    """Name of one pool of the workers of a deployment's version; their lanes begin with it."""
    version = f"{deployment}:{letter}" if letter else deployment
    return f"{version}#{pool}" if pool else version


def lane_names(deployment: str, num_lanes: int, pool: str = "", letter: str = "") -> tuple[str, ...]:
    """All lanes that the workers of a pool take from; ``letter`` is that of their version."""
    name = pool_name(deployment, pool, letter)
    return tuple(_name(name, tier, index) for tier in _SETS for index in range(num_lanes))


def lane_of(
    tenant: str,
    deployment: str,
    num_lanes: int,
    *,
    place: int | None = None,
    tier: Tier = Tier.DEFAULT,
    pool: str = "",
    letter: str = "",
) -> str:
    """The tenant's lane, the same in every process and release. Tenants with consecutive places get different lanes;
    a tenant without a place gets one by the CRC-32 of its id."""
    number = zlib.crc32(tenant.encode()) if place is None else place
    return _name(pool_name(deployment, pool, letter), tier, number % num_lanes)


def tier_of(lane: str) -> Tier:
    """The tier of a lane's jobs."""
    kind = lane.rpartition("/")[0].rpartition("/")[2]
    return next((tier for tier, prefix in _SETS.items() if prefix == f"{kind}/"), Tier.DEFAULT)


def is_lane_of(lane: str, deployment: str) -> bool:
    """Whether this is a tenant's lane of the deployment, of whichever version, pool and tier."""
    return _parts(lane, deployment) is not None


def is_of_pool(lane: str, deployment: str, pool: str) -> bool:
    """Whether workers of this pool take from the lane, those of the lane's version."""
    parts = _parts(lane, deployment)
    return parts is not None and (parts["pool"] or "") == pool


def pool_of(lane: str, deployment: str) -> str:
    """The pool whose workers take from the lane; empty for the shared one."""
    parts = _parts(lane, deployment)
    return (parts["pool"] or "") if parts else ""


def letter_of(lane: str, deployment: str) -> str:
    """The letter of the lane's version; empty for the first version."""
    parts = _parts(lane, deployment)
    return (parts["letter"] or "") if parts else ""


def with_letter(lane: str, deployment: str, letter: str) -> str:
    """The same tenant's lane for the version with this letter."""
    parts = _parts(lane, deployment)
    if parts is None:
        return lane
    rest = lane[len(deployment) :].removeprefix(f":{parts['letter']}" if parts["letter"] else "")
    return pool_name(deployment, letter=letter) + rest


def own_lane(deployment: str, worker: str, letter: str = "") -> str:
    """The worker's own lane, by its stable name; no tenant's lane has such a name."""
    return f"{pool_name(deployment, letter=letter)}/@{worker}"


def _parts(lane: str, deployment: str) -> re.Match[str] | None:
    return _REST.fullmatch(lane, len(deployment)) if lane.startswith(deployment) else None


def _name(pool: str, tier: Tier, index: int) -> str:
    return f"{pool}/{_SETS[tier]}{index:02d}"
