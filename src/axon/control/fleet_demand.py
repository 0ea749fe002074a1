"""Counts the demand for each group of replicas: jobs in its lanes, and turns that have not ended. Decides nothing."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import structlog

from axon.domain.fairness.lane import lane_names, tier_of
from axon.domain.fleet.demand import Demand
from axon.domain.fleet.desired import meant
from axon.domain.fleet.replica import Group
from axon.domain.registry.deployment import Deployment
from axon.domain.registry.snapshot import Snapshot
from axon.domain.tenants.tenant import Tier
from axon.errors import AxonError
from axon.ports.queue import Queue
from axon.ports.store import UnfinishedTurns
from axon.registry.last_asked import LastAsked
from axon.runtime.clock import Clock

MAX_LANES = 512
"""Lanes that one look counts. A broker answers for one lane at a time, so the groups take turns; in between the last
count of a group holds."""

_logger = structlog.get_logger("axon.control")


class FleetDemand:
    """Remembers the last count of each group's lanes."""

    def __init__(
        self,
        turns: UnfinishedTurns,
        queue: Queue,
        *,
        asked: LastAsked,
        clock: Clock,
        max_lanes: int = MAX_LANES,
    ) -> None:
        """``asked`` knows when each deployment was last asked."""
        self._turns, self._queue, self._asked, self._clock = turns, queue, asked, clock
        self._max_lanes = max_lanes
        self._waiting: dict[Group, Mapping[Tier, int]] = {}
        """By tier; the groups are in the order in which they were counted, the latest last."""

    async def look(self, snapshot: Snapshot, groups: Iterable[Group]) -> Mapping[Group, Demand]:
        """The demand for each of the groups, as far as it is known.

        Turns of a version in all its pools count for its deployment's own pool.
        """
        wanted = [group for group in groups if meant(snapshot, group) is not None]
        await self._count_lanes(snapshot, wanted)
        turns = await self._unfinished()
        asked = {name: await self._last_asked(name) for name in sorted({group.deployment for group in wanted})}
        found: dict[Group, Demand] = {}
        for group in wanted:
            of = meant(snapshot, group)
            assert of is not None
            is_own = group.pool == of.deployment.pool
            num = None if turns is None else turns[group.deployment, of.spec.version] if is_own else 0
            last_asked = asked[group.deployment]
            tiers = self._waiting.get(group)
            waiting = None if tiers is None else sum(tiers.values())
            found[group] = Demand(waiting=waiting, tiers=tiers or {}, unfinished=num, last_asked=last_asked)
        return found

    async def _last_asked(self, deployment: str) -> float | None:
        try:
            return await self._asked.of(deployment, now=self._clock.now())
        except AxonError as error:
            _logger.warning("fleet.last_asked_unknown", deployment=deployment, error=str(error))
            return None

    async def _count_lanes(self, snapshot: Snapshot, groups: Sequence[Group]) -> None:
        """Counts the lanes of the groups that were counted longest ago, as many as one look may."""
        self._waiting = {group: num for group, num in self._waiting.items() if group in groups}
        left = self._max_lanes
        for group in [*(each for each in groups if each not in self._waiting), *list(self._waiting)]:
            lanes = _lanes(snapshot.deployments[group.deployment], group)
            if len(lanes) > left and left < self._max_lanes:
                break
            left -= len(lanes)
            self._waiting.pop(group, None)
            try:
                self._waiting[group] = _by_tier(await self._queue.depths(lanes))
            except AxonError as error:
                _logger.warning("fleet.demand_unknown", group=str(group), error=str(error))
                break  # the queue is away: the others would wait for it too

    async def _unfinished(self) -> Counter[tuple[str, str]] | None:
        try:
            counted = await self._turns.count_unfinished()
        except AxonError as error:
            _logger.warning("fleet.demand_unknown", error=str(error))
            return None
        return Counter({(each.deployment, each.version): each.count for each in counted})


def _by_tier(depths: Mapping[str, int]) -> Mapping[Tier, int]:
    tiers = Counter[Tier]()
    for lane, depth in depths.items():
        tiers[tier_of(lane)] += depth
    return {tier: num for tier, num in tiers.items() if num}


def _lanes(deployment: Deployment, group: Group) -> tuple[str, ...]:
    return lane_names(deployment.name, deployment.num_lanes, group.pool, group.letter)
