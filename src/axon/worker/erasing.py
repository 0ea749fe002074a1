"""Has the engine erase its copies of the KV blocks of erased sessions. Knows no text.

An erasure is announced, and acted on at once. Announcements may be lost, and an engine may be down: so tombstones are
looked up as well, all that may still matter for a new engine, the newest ones for one that is known.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from axon.domain.session.erasure import session_of_blocks
from axon.errors import AxonError
from axon.ports.live import ERASURES, Wakeups
from axon.ports.store import Tombstones
from axon.runtime.clock import Clock
from axon.worker.child.supervisor import Supervisor

_LOOK_S = 30.0
_OVERLAP_S = 120.0
"""Tombstones so much older than the last look are looked up again: a turn that ran when it was erased may have kept
blocks since."""
_LISTEN_S = 60.0
_RETRY_S = 1.0

_logger = structlog.get_logger("axon.worker")


@dataclass(frozen=True, slots=True)
class Kept:
    """Where tombstones are, and for how long an engine keeps copies of blocks; 0 sets no limit."""

    tombstones: Tombstones
    max_age_s: float


class Erasing:
    """``run`` looks up tombstones; ``listen`` acts on those that are announced."""

    def __init__(self, supervisor: Supervisor, kept: Kept, wakeups: Wakeups, clock: Clock) -> None:
        self._supervisor, self._kept = supervisor, kept
        self._wakeups, self._clock = wakeups, clock
        self._looked_for: int | None = None
        """The process id of the engine that the last look was for."""
        self._looked_at = 0.0

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            try:
                await self.look()
            except AxonError as error:
                _logger.warning("worker.erasures_unknown", error=str(error), next="looks again")
            await asyncio.sleep(_LOOK_S)

    async def look(self) -> None:
        """Has the engine erase what has a tombstone that it may not know."""
        now, engine = self._clock.now(), self._supervisor.engine_pid
        oldest = now - self._kept.max_age_s if self._kept.max_age_s > 0 else 0.0
        if self._looked_for == engine:
            oldest = max(oldest, self._looked_at - _OVERLAP_S)
        if self._erase(await self._kept.tombstones.since(oldest)):
            self._looked_for, self._looked_at = engine, now

    async def listen(self) -> None:
        """Erases at once what is announced, until cancelled."""
        while True:
            try:
                async with self._wakeups.listen(ERASURES) as listener:
                    while True:
                        if mark := await listener.next(_LISTEN_S):
                            self._erase([mark.decode(errors="replace")])
            except AxonError:
                await asyncio.sleep(_RETRY_S)

    def _erase(self, marks: Iterable[str]) -> bool:
        sessions = sorted({session for mark in marks if (session := session_of_blocks(mark))})
        return self._supervisor.erase(sessions)
