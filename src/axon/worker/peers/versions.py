"""Who else has a version? Remembers for how long nobody was seen to have it. Knows no job."""

from collections.abc import Iterable, Sequence

from axon.domain.presence import Presence
from axon.ports.live import Presences
from axon.runtime.clock import Clock

_FRESH_S = 0.2
"""How long an answer of the presences counts here: many jobs of one version come at once."""
_LAPSE_S = 2.0
"""Not looked at for so long, a version may have been there and gone again: it is missed anew."""


def is_served(presences: Iterable[Presence], version: str, *, me: str, pool: str = "") -> bool:
    """Whether another worker of the pool that stays has the version; ``me`` is an incarnation."""
    return any(
        presence.deployment.version == version
        and presence.pool == pool
        and presence.incarnation != me
        and not presence.draining
        for presence in presences
    )


class Versions:
    """The versions of a deployment's other workers, as one of them sees it."""

    def __init__(self, presences: Presences, *, deployment: str, me: str, clock: Clock, pool: str = "") -> None:
        self._presences, self._deployment, self._pool = presences, deployment, pool
        self._me, self._clock = me, clock
        self._seen: tuple[float, Sequence[Presence]] | None = None
        self._missed: dict[str, tuple[float, float]] = {}
        """By version, since when it is missed, and when that was last looked at."""

    async def missed_s(self, version: str) -> float | None:
        """For how long it has been looked for in vain; None where another worker has it."""
        presences, now = await self._present(), self._clock.monotonic()
        self._missed = {name: seen for name, seen in self._missed.items() if now - seen[1] <= _LAPSE_S}
        if is_served(presences, version, me=self._me, pool=self._pool):
            self._missed.pop(version, None)
            return None
        since, _ = self._missed.get(version, (now, now))
        self._missed[version] = since, now
        return now - since

    async def _present(self) -> Sequence[Presence]:
        now = self._clock.monotonic()
        if self._seen is None or now - self._seen[0] > _FRESH_S:
            self._seen = now, await self._presences.all(self._deployment)
        return self._seen[1]
