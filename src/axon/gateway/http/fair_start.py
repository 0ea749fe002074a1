"""Round-robin over tenants before a request is routed, parsed and admitted. Refuses nobody, knows no limit.

The event loop runs everything that is ready before it looks at its sockets again. A burst that is read at once would be
parsed and refused to its last request before anybody else's gets a turn. Here a few requests of each tenant start in
each pass of the loop; the rest of a burst waits for the next passes. Nothing is held while a request runs, so that a
request that waits for something else keeps no other from starting.
"""

import asyncio
from collections import deque


class FairStart:
    """Lets ``per_pass`` requests of each tenant start in one pass of the event loop."""

    def __init__(self, per_pass: int = 4) -> None:
        self._per_pass = per_pass
        self._started: dict[str, int] = {}
        """How many of each tenant have started in this pass."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Bounded by the number of connections."""
        self._is_scheduled = False

    async def turn(self, tenant: str) -> None:
        """Returns when the tenant's request may go on, in the order of its requests."""
        loop = asyncio.get_running_loop()
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._next_pass)
        started = self._started.get(tenant, 0)
        if started < self._per_pass and tenant not in self._waiting:
            self._started[tenant] = started + 1
            return
        place = loop.create_future()
        self._waiting.setdefault(tenant, deque()).append(place)
        await place

    def _next_pass(self) -> None:
        self._started = {}
        for tenant, line in list(self._waiting.items()):
            while line and self._started.get(tenant, 0) < self._per_pass:
                place = line.popleft()
                if not place.done():  # else its client has left
                    place.set_result(None)
                    self._started[tenant] = self._started.get(tenant, 0) + 1
            if not line:
                del self._waiting[tenant]
        self._is_scheduled = bool(self._started)
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._next_pass)
