"""Whether a pool of a deployment can get more workers, as control reports it: then a request that would wait longer
than is promised is accepted and waits for them, instead of being refused. Pure.

    no report, an old one, or a launcher that only recommends      refuse, as a fleet of a fixed size does
    every replica that may run is ready, or starts fail            refuse
    replicas start, or may be started                              wait, for the deployment's patience with cold starts

The patience counts from the first request that waits like this, and begins anew with each worker that becomes ready. So
a start that hangs is believed once and for no longer than that.
"""

from dataclasses import dataclass, replace

from axon.domain.fleet.status import FleetStatus

LAUNCHERS = frozenset({"process", "kubernetes"})
"""Launchers that start workers by themselves."""
FRESH_S = 10.0
"""Seconds for which a report counts: a leader reports about once a second, and is replaced within a few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A pool's workers as last reported. Times are of the reader's monotonic clock."""

    ready: int
    more: int
    """Workers that it may still gain."""
    reported: float
    """When the report was first read."""
    awaited_since: float | None = None
    """When the first request was accepted that waits for a worker, since the last one became ready."""


def growth_of(
    before: Growth | None, status: FleetStatus | None, deployment: str, pool: str, *, reported: float
) -> Growth | None:
    """What a report says of a pool; None where nobody starts workers. ``reported`` is when it was first read.

    A report of a look that was not finished says nothing, so what was known before it stays until it is too old.
    """
    if status is None or status.launcher not in LAUNCHERS:
        return None
    if status.problem:
        return before
    own = [each for each in status.groups if each.group.deployment == deployment and each.group.pool == pool]
    ready, more = sum(each.ready for each in own), sum(each.more for each in own)
    since = None if before is None or ready > before.ready else before.awaited_since
    return Growth(ready=ready, more=more, reported=reported, awaited_since=since)


def awaited(growth: Growth, *, now: float) -> Growth:
    """The growth after a request was accepted that waits for a worker."""
    return growth if growth.awaited_since is not None else replace(growth, awaited_since=now)


def extra_s(growth: Growth | None, *, patience_s: float, now: float) -> float:
    """Seconds that a request may wait for more workers, beyond what its tier promises: what is left of the deployment's
    patience; 0 where none can come."""
    if growth is None or growth.more <= 0 or now - growth.reported > FRESH_S:
        return 0.0
    waited_s = 0.0 if growth.awaited_since is None else now - growth.awaited_since
    return max(0.0, patience_s - waited_s)
