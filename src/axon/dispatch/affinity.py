"""Affinity: sends a follow-up turn to the worker that holds its conversation's KV blocks, and a first one to a worker
of the gateway's zone, if these have free slots.

An optimisation only: if anything is missing, stale or full, the turn goes to its tenant's lane. Knows no HTTP.
"""

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from axon.dispatch.config import DispatchConfig
from axon.domain.fairness.lane import letter_of, own_lane
from axon.domain.job import Job
from axon.domain.presence import Presence
from axon.domain.session.residence import Residence, choose_near, choose_worker
from axon.domain.wire import decode, encode
from axon.errors import AxonError
from axon.ports.live import Cache, Presences
from axon.ports.queue import OwnLanes
from axon.runtime.clock import Clock

_FRESH_S = 0.2
"""Seconds that a read of the presences is cached."""


def chat_affinity(tenant: str, messages: Sequence[Mapping[str, object]]) -> str:
    """Routing key of a chat: a digest of its messages up to the first user message, which all its turns share."""
    first = next((index for index, each in enumerate(messages) if each["role"] == "user"), len(messages) - 1)
    return hashlib.sha256(msgspec.msgpack.encode((tenant, messages[: first + 1]))).hexdigest()[:32]


class Residences:
    """Cache of residences: which worker holds a session's blocks. A missing entry means nothing."""

    def __init__(self, cache: Cache, *, ttl_s: float) -> None:
        self._cache, self._ttl_s = cache, ttl_s

    async def put(self, job: Job, residence: Residence) -> None:
        """Records the residence of the job's session; a failed write is ignored."""
        if key := _key(job):
            with contextlib.suppress(AxonError):
                await self._cache.put(key, encode(residence), ttl_s=self._ttl_s)

    async def find(self, job: Job) -> Residence | None:
        key = _key(job)
        body = await self._cache.get(key) if key else None
        try:
            return decode(Residence, body) if body else None
        except ValueError:
            return None


class Affinity:
    """Offers turns to workers through their own lanes."""

    def __init__(
        self,
        *,
        residences: Residences,
        presences: Presences,
        own_lanes: OwnLanes,
        config: DispatchConfig,
        clock: Clock,
        zone: str = "",
    ) -> None:
        self._residences, self._presences, self._own_lanes = residences, presences, own_lanes
        self._config, self._clock, self._zone = config, clock, zone
        self._seen: dict[str, tuple[float, Sequence[Presence]]] = {}
        self._offered: dict[tuple[str, str], tuple[float, int]] = {}
        """By deployment and worker: the time of its last announcement, and the slots offered here since."""

    async def offer(self, job: Job, body: bytes) -> str | None:
        """Offers the job; returns the own lane that took it, or None when it must go to its tenant's lane."""
        try:
            presence = await self._find(job)
            if presence is None or not self._has_room(presence, job.choices):
                return None
            own = own_lane(job.deployment, presence.worker, letter_of(job.lane, job.deployment))
            return own if await self._own_lanes.offer(own, job.lane, body) else None
        except AxonError:
            return None  # the offer may have succeeded: a copy in both lanes is harmless

    async def _find(self, job: Job) -> Presence | None:
        residence = await self._residences.find(job)
        if residence is None and not self._zone:
            return None
        presences = await self._present(job.deployment)
        if residence is None:
            return choose_near(job, presences, zone=self._zone)
        return choose_worker(job, residence, presences, now=self._clock.now(), max_age_s=self._config.affinity_s)

    async def _present(self, deployment: str) -> Sequence[Presence]:
        now = self._clock.monotonic()
        seen = self._seen.get(deployment)
        if seen is None or now - seen[0] > _FRESH_S:
            seen = self._seen[deployment] = now, await self._presences.all(deployment)
            self._forget_others(deployment, {presence.worker for presence in seen[1]})
        return seen[1]

    def _forget_others(self, deployment: str, present: AbstractSet[str]) -> None:
        gone = [key for key in self._offered if key[0] == deployment and key[1] not in present]
        for key in gone:
            del self._offered[key]

    def _has_room(self, presence: Presence, num_slots: int) -> bool:
        key = presence.deployment.name, presence.worker
        announced_at, num_given = self._offered.get(key, (presence.at, 0))
        if announced_at != presence.at:
            num_given = 0
        if num_given + num_slots > presence.load.free_slots:
            return False
        self._offered[key] = presence.at, num_given + num_slots
        return True


def _key(job: Job) -> str:
    """Cache key of a job's residence; blocks are never shared between tenants or versions."""
    name = job.session or job.affinity
    return f"residence/{job.deployment}/{job.pinned}/{job.tenant}/{name}" if name else ""
