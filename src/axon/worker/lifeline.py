"""The worker's lifeline: a subscription to a channel of its own. Others see it cut long before its lease lapses.

The operating system closes a dead process's connections at once, and the service then counts no listener any more. A
connection can also be lost otherwise, so a cut lifeline is a sign of death and no proof; the lease decides where no
other sign comes with it. Knows no job.
"""

import asyncio
import contextlib

from axon.errors import AxonError
from axon.ports.live import Wakeups, lifeline

_LISTEN_S = 60.0
_RETRY_S = 0.2


class Lifeline:
    """``run`` until cancelled."""

    def __init__(self, owner: str, wakeups: Wakeups) -> None:
        self._owner, self._wakeups = owner, wakeups

    async def run(self) -> None:
        """Listens until cancelled; nobody says anything there."""
        while True:
            with contextlib.suppress(AxonError):
                async with self._wakeups.listen(lifeline(self._owner)) as listener:
                    while True:
                        await listener.next(_LISTEN_S)
            await asyncio.sleep(_RETRY_S)
