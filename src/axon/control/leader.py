"""Leader election among control processes, by a lease (a crowd of one). Knows nothing of the leader's duties.

A leader's work is idempotent, so two leaders for a moment, as after the live service lost its memory, do no harm; the
election only avoids doing the same work twice all the time.
"""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Awaitable, Callable

import structlog

from axon.errors import AxonError
from axon.ports.live import Crowds
from axon.runtime.clock import Clock

CONTROL, LAUNCHING = "control/leader", "control/launcher"
"""Crowds of the two elections: who does control's duties, and who launches workers, among controls that can."""
_RENEWALS = 3

_logger = structlog.get_logger("axon.control")


class Leader:
    """``run`` until cancelled, then ``leave``."""

    def __init__(
        self,
        crowds: Crowds,
        clock: Clock,
        *,
        lease_s: float,
        on_change: Callable[[bool], None] = lambda _: None,
        crowd: str = CONTROL,
        name: str = "",
        may_stand: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """``may_stand`` says whether it may take or renew the lease now; without it, it always may."""
        self.name = name or f"{socket.gethostname()}-{secrets.token_hex(3)}"
        self._crowds, self._clock, self._lease_s = crowds, clock, lease_s
        self._on_change, self._crowd, self._may_stand = on_change, crowd, may_stand
        self._until = 0.0
        self._led = False

    def leads(self) -> bool:
        """Whether its lease is valid by its own clock, so a process that was paused does not lead when it wakes up."""
        return self._clock.monotonic() < self._until

    async def run(self) -> None:
        """Renews or tries to take the lease, three times per lease, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self._lease_s / _RENEWALS)

    async def look(self) -> None:
        """Renews the lease, or takes it if it is free."""
        asked_at = self._clock.monotonic()
        try:
            if self._may_stand is not None and not await self._may_stand():
                return
            if await self._crowds.enter(self._crowd, self.name, limit=1, ttl_s=self._lease_s):
                self._until = asked_at + self._lease_s
        except AxonError as error:
            _logger.warning("leader.not_known", error=str(error))
        finally:
            self._report()

    async def leave(self) -> None:
        """Gives up the lease at once."""
        self._until = 0.0
        self._report()
        with contextlib.suppress(AxonError):
            await self._crowds.leave(self._crowd, self.name)

    def _report(self) -> None:
        if self.leads() != self._led:
            self._led = self.leads()
            _logger.info("leader.leads" if self._led else "leader.stands_by", control=self.name, crowd=self._crowd)
            self._on_change(self._led)
