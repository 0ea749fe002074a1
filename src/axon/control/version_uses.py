"""What a version is still needed for: pinned sessions, unfinished turns, waiting jobs. Decides nothing."""

from axon.domain.fairness.lane import lane_names
from axon.domain.registry.deployment import Deployment, Member
from axon.ports.queue import Queue
from axon.ports.store import TurnStore
from axon.sessions.lookup import Lookup
from axon.sessions.pins import SessionPins

_PAGE = 500


class VersionUses:
    """Counts the uses of versions in the store and on the queue."""

    def __init__(self, turns: TurnStore, lookup: Lookup, pins: SessionPins, queue: Queue) -> None:
        self._turns, self._lookup, self._pins, self._queue = turns, lookup, pins, queue

    async def barrier(self) -> None:
        """Returns when everything that was accepted before is in the store."""
        await self._lookup.behind_barrier()

    async def pinned(self, version: str) -> int:
        """Number of sessions with an unexpired pin to the version."""
        return await self._pins.count(version)

    async def unfinished(self, deployment: str, version: str) -> int:
        """Number of the version's accepted turns that have not ended."""
        num, after = 0, None
        while turns := await self._turns.unfinished(limit=_PAGE, after=after):
            num += sum(turn.job.deployment == deployment and turn.job.version == version for turn in turns)
            after = turns[-1].opened_at, turns[-1].id
        return num

    async def waiting(self, deployment: Deployment, member: Member) -> int:
        """Number of jobs in the member's lanes."""
        pools = {"", deployment.pool}
        lanes = [
            lane
            for pool in sorted(pools)
            for lane in lane_names(deployment.name, deployment.num_lanes, pool, member.letter)
        ]
        return sum((await self._queue.depths(lanes)).values())
