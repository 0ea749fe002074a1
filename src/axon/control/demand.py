"""Reads the demand for each group of replicas: jobs in lanes, unfinished turns, the last request. Decides nothing."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import structlog

from axon.domain.fleet.demand import Demand
from axon.domain.fleet.replica import Group
from axon.domain.job import Job
from axon.domain.lane import is_lane_of, lane_names, letter_of, pool_of
from axon.domain.registry.deployment import Deployment
from axon.errors import AxonError
from axon.ports.queue import Queue
from axon.ports.store import TurnStore
from axon.registry.last_asked import LastAsked

_PAGE = 500
_RECENT_S = 600.0
"""Lanes are counted for this long after a deployment's last request. A job that waits for longer is in the store by
then, and to ask a broker for lanes that were never declared costs a channel each."""

_logger = structlog.get_logger("axon.control")


async def demand_of(
    deployments: Iterable[Deployment],
    *,
    turns: TurnStore,
    queue: Queue,
    asked: LastAsked,
    now: float,
    pools: Mapping[str, Iterable[str]] | None = None,
) -> Mapping[Group, Demand]:
    """The demand for each group of these deployments: of all their versions, in the shared pool, the deployment's own,
    those of ``pools`` (by deployment) and every pool in whose lanes an unfinished turn is.

    A service that does not answer makes its part unknown, not zero.
    """
    unfinished = await _unfinished(turns)
    found: dict[Group, Demand] = {}
    for deployment in deployments:
        last_asked = await _last_asked(asked, deployment.name, now)
        groups = _groups(deployment, unfinished or {}, (pools or {}).get(deployment.name, ()))
        is_recent = last_asked is None or now - last_asked <= _RECENT_S
        waiting = await _waiting(queue, deployment, groups) if is_recent else Counter()
        for group in groups:
            found[group] = Demand(
                waiting=None if waiting is None else waiting[group],
                unfinished=None if unfinished is None else unfinished[group],
                last_asked=last_asked,
            )
    return found


def group_of(job: Job) -> Group | None:
    """The group whose replicas take a job; None for one whose lane is not a tenant's."""
    if not is_lane_of(job.lane, job.deployment):
        return None
    return Group(job.deployment, letter_of(job.lane, job.deployment), pool_of(job.lane, job.deployment))


async def _unfinished(turns: TurnStore) -> Counter[Group] | None:
    """The number of accepted turns that have not ended, by group; None if the store does not answer."""
    found: Counter[Group] = Counter()
    after: tuple[float, str] | None = None
    try:
        while page := await turns.unfinished(limit=_PAGE, after=after):
            found.update(group for turn in page if (group := group_of(turn.job)) is not None)
            after = page[-1].opened_at, page[-1].id
    except AxonError as error:
        _logger.warning("demand.turns_unknown", error=str(error))
        return None
    return found


async def _waiting(queue: Queue, deployment: Deployment, groups: Sequence[Group]) -> Counter[Group] | None:
    """The number of jobs in the lanes of each group; None if the queue does not answer."""
    found: Counter[Group] = Counter()
    try:
        for group in groups:
            lanes = lane_names(deployment.name, deployment.num_lanes, group.pool, group.letter)
            found[group] = sum((await queue.depths(lanes)).values())
    except AxonError as error:
        _logger.warning("demand.lanes_unknown", deployment=deployment.name, error=str(error))
        return None
    return found


async def _last_asked(asked: LastAsked, deployment: str, now: float) -> float | None:
    try:
        return await asked.of(deployment, now=now)
    except AxonError as error:
        _logger.warning("demand.last_asked_unknown", deployment=deployment, error=str(error))
        return None


def _groups(deployment: Deployment, unfinished: Mapping[Group, int], pools: Iterable[str]) -> Sequence[Group]:
    letters = {member.letter for member in deployment.members}
    own = {Group(deployment.name, letter, pool) for letter in letters for pool in {"", deployment.pool, *pools}}
    return sorted(own | {group for group in unfinished if group.deployment == deployment.name})
