"""Where a version has workers, and which members of a deployment that makes ready. Pure."""

from collections.abc import Sequence

from axon.domain.presence import Presence
from axon.domain.registry.deployment import Deployment


def cold_pools(deployment: Deployment, version: str, presences: Sequence[Presence]) -> frozenset[str]:
    """The pools in which the version has no worker that takes jobs, of those that it has to serve.

    These are the deployment's own pool and every pool in which the stable version has a worker: tenants of a pool must
    find the new version there as well.
    """
    served = {deployment.pool} | _pools(deployment.stable, presences)
    return frozenset(served - _pools(version, presences))


def _pools(version: str, presences: Sequence[Presence]) -> set[str]:
    return {each.pool for each in presences if each.deployment.version == version and not each.draining}
