"""The report on the fleet on its way from control's leader to gateways and the command line, in ``live``. Decides
nothing."""

from axon.domain.fleet.status import FleetStatus, decode, encode
from axon.ports.live import Cache

KEPT_S = 60.0
"""Seconds for which the last report of a leader that is gone can still be read, with its age."""
_KEY = "fleet/status"


class FleetReports:
    """The last report. A missing one means that no leader has reported, or that ``live`` has lost it."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def put(self, status: FleetStatus) -> None:
        """Replaces the report, unless a leader of a later term has reported."""
        last = await self.last()
        if last is None or last.term <= status.term:
            await self._cache.put(_KEY, encode(status), ttl_s=KEPT_S)

    async def last(self) -> FleetStatus | None:
        """The last report, if it is younger than a minute."""
        value = await self._cache.get(_KEY)
        return None if value is None else decode(value)
