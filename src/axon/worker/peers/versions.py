"""Tracks which versions other workers run, and since when a version has been missing. Knows no job."""

from collections.abc import Iterable, Sequence

from axon.domain.presence import Presence
from axon.ports.live import Presences
from axon.runtime.clock import Clock
from axon.worker.identity import Identity

_CACHE_S = 0.2
"""Seconds for which one reading of the presences is used, because many jobs of one version come at once."""
_LAPSE_S = 2.0
"""A version that nobody asked for in this time may have come and gone: its absence is timed anew."""


def is_served(presences: Iterable[Presence], version: str, *, me: str, pool: str = "") -> bool:
    """Whether another worker of the pool runs the version and is not draining; ``me`` is an incarnation."""
    return any(
        presence.deployment.version == version
        and presence.pool == pool
        and presence.incarnation != me
        and not presence.draining
        for presence in presences
    )


class Versions:
    """Tracks which versions the other workers of the deployment run, and since when one has been missing."""

    def __init__(self, presences: Presences, identity: Identity, clock: Clock) -> None:
        self._presences, self._identity, self._clock = presences, identity, clock
        self._seen: tuple[float, Sequence[Presence]] | None = None
        self._missed: dict[str, tuple[float, float]] = {}
        """By version: the monotonic times since when it has been missing and when it was last asked for."""

    async def missed_s(self, version: str) -> float | None:
        """Seconds for which the version has been missing; None when another worker runs it."""
        presences, now = await self._present(), self._clock.monotonic()
        self._missed = {name: seen for name, seen in self._missed.items() if now - seen[1] <= _LAPSE_S}
        if is_served(presences, version, me=self._identity.incarnation, pool=self._identity.pool):
            self._missed.pop(version, None)
            return None
        since, _ = self._missed.get(version, (now, now))
        self._missed[version] = since, now
        return now - since

    async def _present(self) -> Sequence[Presence]:
        now = self._clock.monotonic()
        if self._seen is None or now - self._seen[0] > _CACHE_S:
            self._seen = now, await self._presences.all(self._identity.deployment)
        return self._seen[1]
