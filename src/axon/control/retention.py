"""Retention: erases idle sessions, and deletes tombstones that are no longer needed. Knows no token log."""

import asyncio
from collections.abc import Callable

import structlog

from axon.errors import AxonError
from axon.ports.conversation_store import IdleConversations
from axon.ports.store import SessionTurns, Tombstones
from axon.runtime.clock import Clock

_EVERY_S = 60.0
_BATCH = 500
TOMBSTONES_S = 30 * 24 * 3600.0
"""Seconds that a tombstone is kept: longer than any record can be on its way to the store, and
than an engine keeps copies of KV blocks (``kv_folder_max_age_s``)."""

_logger = structlog.get_logger("axon.control")


class Retention:
    """Several may run at once: each finds what is left to do."""

    def __init__(
        self,
        turns: SessionTurns,
        conversations: IdleConversations,
        tombstones: Tombstones,
        *,
        idle_ttl_s: float,
        clock: Clock,
        leads: Callable[[], bool] = lambda: True,
        on_evicted: Callable[[int], None] = lambda num: None,
    ) -> None:
        """``on_evicted`` is told the number of conversations that were idle for too long and are erased."""
        self._on_evicted = on_evicted
        self._turns, self._conversations, self._tombstones = turns, conversations, tombstones
        self._idle_ttl_s, self._clock, self._leads = idle_ttl_s, clock, leads

    async def run(self) -> None:
        """Runs ``look`` once a minute while this process leads, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            if not self._leads():
                continue
            try:
                await self.look()
            except AxonError as error:
                _logger.warning("retention.failed", error=str(error))

    async def look(self) -> None:
        """Erases everything that is due now."""
        idle_before = self._clock.now() - self._idle_ttl_s
        await self._turns.purge_idle(before=idle_before)
        while idle := await self._conversations.idle(before=idle_before, limit=_BATCH):
            await self._conversations.erase(idle)
            self._on_evicted(len(idle))
        await self._tombstones.purge(before=self._clock.now() - TOMBSTONES_S)
