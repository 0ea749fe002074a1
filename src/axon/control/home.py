"""The home of a fleet's processes: the one machine whose controls may launch them (a crowd of one). Launches nothing.

Processes can be found, stopped and counted on their own machine only. Two machines that launch by turns would each run
all replicas, under the same names. So the first machine that comes is the home, and keeps it until none of its controls
has run for ten minutes.
"""

import structlog

from axon.ports.live import Crowds
from axon.runtime.clock import Clock

KEPT_S = 600.0
"""Seconds for which a machine is the home after the last sign of its controls: its workers may still run."""
_CROWD = "control/home"

_logger = structlog.get_logger("axon.control")


class Home:
    """One control's claim for its machine; ``is_ours`` renews it."""

    def __init__(self, crowds: Crowds, clock: Clock, *, machine: str, empty_s: float) -> None:
        """``machine`` is the same for all controls of a machine. One that was told that the home is elsewhere claims it
        only after nobody has had it for ``empty_s`` seconds: ``live`` may just have lost its memory."""
        self._crowds, self._clock, self._machine, self._empty_s = crowds, clock, machine, empty_s
        self._is_elsewhere = False
        self._empty_since: float | None = None

    async def is_ours(self) -> bool:
        """Whether this machine may launch; raises what ``live`` raises."""
        if self._is_elsewhere and not await self._is_vacant():
            return False
        if await self._crowds.enter(_CROWD, self._machine, limit=1, ttl_s=KEPT_S):
            self._is_elsewhere, self._empty_since = False, None
            return True
        if not self._is_elsewhere:
            _logger.error(
                "fleet.launched_elsewhere",
                hint="the workers of this fleet are processes of another machine, whose control has to launch them; "
                "this one launches none until no control has run there for ten minutes",
            )
        self._is_elsewhere = True
        return False

    async def _is_vacant(self) -> bool:
        if await self._crowds.count(_CROWD):
            self._empty_since = None
            return False
        now = self._clock.monotonic()
        self._empty_since = now if self._empty_since is None else self._empty_since
        return now - self._empty_since >= self._empty_s
