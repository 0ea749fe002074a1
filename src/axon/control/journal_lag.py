"""Watches how far the store is behind the journal, for the metrics. Writes nothing."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from axon.errors import AxonError
from axon.ports.journal import Pending

_EVERY_S = 2.0

_logger = structlog.get_logger("axon.control")


class JournalLag:
    """``run`` it in every control; ``look`` counts once."""

    def __init__(self, pending: Callable[[], Awaitable[Pending]], show: Callable[[Pending], None]) -> None:
        self._pending, self._show = pending, show

    async def run(self) -> None:
        """Looks until cancelled. While the journal does not answer, the last figures stay."""
        while True:
            try:
                await self.look()
            except AxonError as error:
                _logger.warning("journal.lag_unknown", error=str(error))
            await asyncio.sleep(_EVERY_S)

    async def look(self) -> None:
        """Counts what is pending and shows it."""
        self._show(await self._pending())
