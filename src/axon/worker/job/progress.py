"""Writes what long answers have said so far to the journal, every few seconds. Knows no engine and no queue.

The token log is the truth while it lasts. Should it be lost together with the worker, the next attempt goes on from the
journal instead of from the prompt, with the tokens that readers have had already. An answer that ends within one
interval is never written before its end: it costs less to generate it again.
"""

import asyncio

import structlog

from axon.domain.turn import so_far
from axon.errors import AxonError
from axon.ports.journal import Journal
from axon.worker.job.hands import Hands

_logger = structlog.get_logger("axon.worker")


class Progress:
    """``run`` until cancelled."""

    def __init__(self, hands: Hands, journal: Journal, *, every_s: float) -> None:
        self._hands, self._journal = hands, journal
        self._every_s = every_s
        self._written: dict[str, int] = {}
        """Tokens of each job in hand that were last sent to the journal, by job id."""

    async def run(self) -> None:
        """Writes until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            await self.write()

    async def write(self) -> None:
        """Writes all jobs that have more tokens in the log than last time; a failed write is left to the next one."""
        known, self._written = self._written, {}
        due = []
        for id, running in self._hands.running.items():
            # In hand for one interval at least, and only what the log has: readers may know no other tokens.
            self._written[id] = known.get(id, 0)
            if id in known and running.sent > known[id] and running.terminal is None and not running.job.forget:
                due.append(so_far(running.job, running.logged()))
                self._written[id] = running.sent
        if due:
            try:
                await self._journal.append(due)
            except AxonError as error:
                _logger.warning("checkpoint.failed", turns=len(due), error=str(error), retry_s=self._every_s)
