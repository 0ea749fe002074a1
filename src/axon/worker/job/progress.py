"""What running answers have said so far, written to the journal now and then. Knows no engine and no queue.

The log is the truth while it lasts; should it be lost with the worker, the next attempt goes on from here instead of
from the prompt, and says again what readers have heard already. An answer that is shorter than the pause is never
written: it costs less to make it again.
"""

import asyncio
from collections.abc import Mapping

import structlog

from axon.domain.turn import so_far
from axon.errors import AxonError
from axon.ports.journal import Journal
from axon.worker.job.running import Running

_logger = structlog.get_logger("axon.worker")


class Checkpoints:
    """``run`` until cancelled."""

    def __init__(self, running: Mapping[str, Running], journal: Journal, *, every_s: float) -> None:
        self._running, self._journal = running, journal
        self._every_s = every_s
        self._written: dict[str, int] = {}
        """Of the jobs that run, tokens that the journal has or has been told of."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self.write()

    async def write(self) -> None:
        """All jobs that have said more since the last time. One that fails is not tried again: the next one is due."""
        known, self._written = self._written, {}
        due = []
        for id, running in self._running.items():
            # Present for one pause at least, and only what the log has: others may have ended it otherwise.
            self._written[id] = known.get(id, 0)
            if id in known and running.sent > known[id] and running.terminal is None and not running.job.forget:
                due.append(so_far(running.job, running.heard()))
                self._written[id] = running.sent
        if due:
            try:
                await self._journal.append(due)
            except AxonError as error:
                _logger.warning("checkpoint.failed", turns=len(due), error=str(error))
