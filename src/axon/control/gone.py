"""Knows which versions are gone for good: their waiting turns are ended. Ends nothing itself.

The registry says of its versions whether they are removed. A version without a record is gone when other workers of its
deployment are there and none has announced it for ten seconds. A deployment without any worker may be cold, or come
back: nothing of it is gone.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from axon.domain.fairness.lane import is_of_pool
from axon.domain.job import Job
from axon.errors import AxonError
from axon.ports.live import Presences
from axon.runtime.clock import Clock

PATIENCE_S = 10.0
"""Seconds for which a version without a record may be missing."""


class GoneVersions:
    """Call ``look`` before each round of questions."""

    def __init__(
        self, presences: Presences, clock: Clock, *, is_removed: Callable[[Job], bool | None] = lambda job: None
    ) -> None:
        """``is_removed`` returns whether a job's registered version was removed; None for one that has no record."""
        self._presences, self._clock, self._is_removed = presences, clock, is_removed
        self._present: dict[str, AbstractSet[tuple[str, str]]] = {}
        """By deployment: pool and version of each worker that takes jobs."""
        self._missed: dict[tuple[str, str], float] = {}
        """By deployment and version: the monotonic time since when it has been missing."""
        self._asked: set[tuple[str, str]] = set()

    def look(self) -> None:
        """Begins a round: presences are read anew, and what nobody asked for in the last round is timed anew."""
        self._present.clear()
        self._missed = {each: since for each, since in self._missed.items() if each in self._asked}
        self._asked.clear()

    async def is_gone(self, job: Job) -> bool:
        """Whether no worker will ever run the job."""
        if (removed := self._is_removed(job)) is not None:
            return removed
        key = job.deployment, job.version
        self._asked.add(key)
        if not await self._is_missing(job):
            self._missed.pop(key, None)
            return False
        now = self._clock.monotonic()
        return now - self._missed.setdefault(key, now) >= PATIENCE_S

    async def _is_missing(self, job: Job) -> bool:
        """Whether workers take from the job's lane, and none of them has its version."""
        if job.deployment not in self._present:
            try:
                presences = await self._presences.all(job.deployment)
            except AxonError:
                return False
            self._present[job.deployment] = {
                (presence.pool, presence.deployment.version) for presence in presences if not presence.draining
            }
        present = self._present[job.deployment]
        versions = {version for pool, version in present if is_of_pool(job.lane, job.deployment, pool)}
        return bool(versions) and job.version not in versions
