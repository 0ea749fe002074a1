"""Of several controls one leads: the one that is in a crowd of one. The others stand by. Knows nothing of its duties.

What a leader does may be done twice, so that two who both think they lead for a moment, as after a lost memory, harm
nobody; the crowd only keeps them from doing the same work all the time.
"""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Callable

import structlog

from axon.errors import AxonError
from axon.ports.live import Crowds
from axon.runtime.clock import Clock

_CROWD = "control/leader"
_RENEWALS = 3

_logger = structlog.get_logger("axon.control")


class Leader:
    """``run`` until cancelled, then ``leave``."""

    def __init__(
        self, crowds: Crowds, clock: Clock, *, lease_s: float, on_change: Callable[[bool], None] = lambda _: None
    ) -> None:
        self.name = f"{socket.gethostname()}-{secrets.token_hex(3)}"
        self._crowds, self._clock, self._lease_s = crowds, clock, lease_s
        self._on_change = on_change
        self._until = 0.0
        self._led = False

    def leads(self) -> bool:
        """Whether it leads now, by its own clock: one that was paused does not think so when it wakes up."""
        return self._clock.monotonic() < self._until

    async def run(self) -> None:
        """Leads or stands by, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self._lease_s / _RENEWALS)

    async def look(self) -> None:
        """Renews its lead, or takes it where nobody has it."""
        asked_at = self._clock.monotonic()
        try:
            if await self._crowds.enter(_CROWD, self.name, limit=1, ttl_s=self._lease_s):
                self._until = asked_at + self._lease_s
        except AxonError as error:
            _logger.warning("leader.not_known", error=str(error))
        self._tell()

    async def leave(self) -> None:
        """Gives the lead up at once."""
        self._until = 0.0
        self._tell()
        with contextlib.suppress(AxonError):
            await self._crowds.leave(_CROWD, self.name)

    def _tell(self) -> None:
        if self.leads() != self._led:
            self._led = self.leads()
            _logger.info("leader.leads" if self._led else "leader.stands_by", control=self.name)
            self._on_change(self._led)
