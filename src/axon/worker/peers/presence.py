"""A worker tells that it is there: now and then, soon after its free slots change, and when it leaves. Runs no job."""

import asyncio
import contextlib
from collections.abc import Callable

import structlog

from axon.domain.presence import Presence
from axon.errors import AxonError, Misconfigured
from axon.ports.live import Presences
from axon.runtime.clock import Clock

_LOOK_S = 0.1
"""The most often it speaks."""
_RETRY_S = 1.0
"""The most often it speaks while nobody can hear it."""
_TIMES = 3
"""Words that may be lost before it is not counted on."""

_logger = structlog.get_logger("axon.worker")


class Announcer:
    """``run`` until cancelled, then ``leave``."""

    def __init__(self, presences: Presences, presence: Callable[[], Presence], *, every_s: float, clock: Clock) -> None:
        self._presences, self._presence, self._clock = presences, presence, clock
        self._every_s = every_s
        self._said: Presence | None = None
        self._said_at = 0.0
        self._failed_at: float | None = None
        self._refused_since: float | None = None

    @property
    def heard(self) -> bool:
        """Whether it has been heard under its name."""
        return self._said is not None

    async def run(self) -> None:
        """Speaks until cancelled; raises ``Misconfigured`` where another worker has the name from the start."""
        while True:
            presence = self._presence()
            if self._is_due(presence):
                await self._say(presence)
            await asyncio.sleep(_LOOK_S)

    async def leave(self) -> None:
        """Says that it is gone; where nobody listens, its silence says so."""
        if self._said is not None:
            with contextlib.suppress(AxonError):
                await self._presences.drop(self._said)

    def _is_due(self, presence: Presence) -> bool:
        last, now = self._said, self._clock.monotonic()
        if self._failed_at is not None:
            return now - self._failed_at >= _RETRY_S
        if last is None or now - self._said_at >= self._every_s:
            return True
        return (last.load.free_slots, last.draining) != (presence.load.free_slots, presence.draining)

    async def _say(self, presence: Presence) -> None:
        try:
            counts = await self._presences.put(presence, ttl_s=_TIMES * self._every_s)
        except AxonError as error:
            _logger.warning("presence.failed", error=str(error))
            self._failed_at = self._clock.monotonic()
            return
        now = self._clock.monotonic()
        self._failed_at = None
        if counts:
            self._said, self._said_at, self._refused_since = presence, now, None
            return
        self._refuse(presence.worker, now)

    def _refuse(self, name: str, now: float) -> None:
        """An earlier life of ours is forgotten in time; who still has the name then is somebody else."""
        if self._refused_since is None:
            self._refused_since = now
        elif now - self._refused_since > 2 * _TIMES * self._every_s:
            message = f"Another worker has the name {name}. Give this one a name of its own with worker.name."
            if self._said is None:
                raise Misconfigured(message)
            _logger.error("presence.name_taken", worker=name, hint=message)
            self._refused_since = now
