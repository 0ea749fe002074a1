"""Announces a worker: at an interval, soon after its free slots change, and when it leaves. Runs no job."""

import asyncio
import contextlib
from collections.abc import Callable

import structlog

from axon.domain.presence import Presence
from axon.errors import AxonError, Misconfigured
from axon.ports.live import Presences
from axon.runtime.clock import Clock

_POLL_S = 0.1
"""Least time between two announcements."""
_RETRY_S = 1.0
"""Least time between two announcements while the service is away."""
_TTL_INTERVALS = 3
"""An announcement expires after this many intervals, so that two may be lost."""

Vacancy = tuple[int, bool]
"""A worker's free slots, and whether it is draining."""

_logger = structlog.get_logger("axon.worker")


class Announcer:
    """``run`` until cancelled, then ``leave``."""

    def __init__(
        self,
        presences: Presences,
        presence: Callable[[], Presence],
        *,
        every_s: float,
        clock: Clock,
        vacancy: Callable[[], Vacancy] | None = None,
    ) -> None:
        """``vacancy`` returns of the presence what is announced as soon as it changes. It is asked ten times a second:
        the whole presence costs much more."""
        self._presences, self._presence, self._clock = presences, presence, clock
        self._vacancy = vacancy or (lambda: _vacancy_of(presence()))
        self._every_s = every_s
        self._announced: Presence | None = None
        self._announced_at = 0.0
        self._failed_at: float | None = None
        self._refused_since: float | None = None

    @property
    def heard(self) -> bool:
        """Whether the service has accepted an announcement under the worker's name."""
        return self._announced is not None

    async def run(self) -> None:
        """Announces until cancelled; raises ``Misconfigured`` when another worker has the name from the start."""
        while True:
            if self._is_due(self._vacancy()):
                await self._announce(self._presence())
            await asyncio.sleep(_POLL_S)

    async def leave(self) -> None:
        """Withdraws the announcement; where the service is away, it expires by itself."""
        if self._announced is not None:
            with contextlib.suppress(AxonError):
                await self._presences.drop(self._announced)

    def _is_due(self, vacancy: Vacancy) -> bool:
        last, now = self._announced, self._clock.monotonic()
        if self._failed_at is not None:
            return now - self._failed_at >= _RETRY_S
        if last is None or now - self._announced_at >= self._every_s:
            return True
        return _vacancy_of(last) != vacancy

    async def _announce(self, presence: Presence) -> None:
        try:
            counts = await self._presences.put(presence, ttl_s=_TTL_INTERVALS * self._every_s)
        except AxonError as error:
            _logger.warning("presence.failed", worker=presence.worker, error=str(error), retry_s=_RETRY_S)
            self._failed_at = self._clock.monotonic()
            return
        now = self._clock.monotonic()
        self._failed_at = None
        if counts:
            self._announced, self._announced_at, self._refused_since = presence, now, None
            return
        self._refuse(presence.worker, now)

    def _refuse(self, name: str, now: float) -> None:
        """An earlier incarnation's announcement expires; a name that is still taken after that is another worker's."""
        if self._refused_since is None:
            self._refused_since = now
        elif now - self._refused_since > 2 * _TTL_INTERVALS * self._every_s:
            message = taken(name)
            if self._announced is None:
                raise Misconfigured(message)
            _logger.error("presence.name_taken", worker=name, hint=message)
            self._refused_since = now


def taken(name: str) -> str:
    """Says that a worker cannot have its name."""
    return f"Another worker has the name {name}. Give this one a name of its own with worker.name."


def _vacancy_of(presence: Presence) -> Vacancy:
    return presence.load.free_slots, presence.draining
