"""Round robin over tenants, before a request is routed, parsed and admitted. Refuses nobody and knows no limit.

The event loop runs everything that is ready before it polls its sockets again. Without this, a burst of one tenant that
is read in one poll would be parsed and refused to its last request before any other tenant's request runs. Here a few
requests of each tenant start in each pass of the loop, and the rest of a burst waits for later passes. A request holds
nothing while it runs, so one that waits for something else keeps no other from starting.
"""

import asyncio
from collections import deque


class FairStart:
    """Lets ``per_pass`` requests of each tenant start in one pass of the event loop."""

    def __init__(self, per_pass: int = 4) -> None:
        self._per_pass = per_pass
        self._started: dict[str, int] = {}
        """Number of requests of each tenant that started in this pass."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Each tenant's queue of requests that wait for a later pass; the number of connections bounds them."""
        self._is_scheduled = False
        """Whether ``_next_pass`` will run in the next pass of the loop."""

    async def wait(self, tenant: str) -> None:
        """Returns when the tenant's request may start; requests of one tenant start in the order of their calls."""
        loop = asyncio.get_running_loop()
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._next_pass)
        started = self._started.get(tenant, 0)
        if started < self._per_pass and tenant not in self._waiting:
            self._started[tenant] = started + 1
            return
        waiter = loop.create_future()
        self._waiting.setdefault(tenant, deque()).append(waiter)
        await waiter

    def _next_pass(self) -> None:
        """Starts ``per_pass`` waiting requests of each tenant, and schedules itself again if it started any."""
        self._started = {}
        for tenant, waiters in list(self._waiting.items()):
            while waiters and self._started.get(tenant, 0) < self._per_pass:
                waiter = waiters.popleft()
                if not waiter.done():  # one that is done was cancelled: its client has left
                    waiter.set_result(None)
                    self._started[tenant] = self._started.get(tenant, 0) + 1
            if not waiters:
                del self._waiting[tenant]
        self._is_scheduled = bool(self._started)
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._next_pass)
