"""Takes a census of the store now and then, for the metrics. Only the leader does, as it costs the store a scan."""

import asyncio
from collections.abc import Callable

import structlog

from axon.domain.census import Census
from axon.errors import AxonError
from axon.ports.store import StorageStore
from axon.runtime.clock import Clock

_EVERY_S = 30.0

_logger = structlog.get_logger("axon.control")


class Censuses:
    """``run`` it in every control; ``look`` takes one census."""

    def __init__(
        self,
        storage: StorageStore,
        show: Callable[[Census], None],
        clock: Clock,
        *,
        kept_s: float,
        hide: Callable[[], None] = lambda: None,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """Sessions without a turn for ``kept_s`` seconds are not counted. ``hide`` is called when this process does not
        lead any more."""
        self._storage, self._show, self._clock = storage, show, clock
        self._kept_s, self._hide, self._leads = kept_s, hide, leads

    async def run(self) -> None:
        """Looks while this process leads, until cancelled."""
        while True:
            if self._leads():
                try:
                    await self.look()
                except AxonError as error:
                    _logger.warning("census.failed", error=str(error))
            else:
                self._hide()
            await asyncio.sleep(_EVERY_S)

    async def look(self) -> None:
        """Takes a census and shows it."""
        self._show(await self._storage.census(since=self._clock.now() - self._kept_s))
