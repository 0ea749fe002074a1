"""Bounds the messages that are received at once, in all and of each tenant. No I/O, no clock; knows no message.

The library gives a message as a whole, so its bytes cannot be counted while they come. Each that is being received is
taken to be as large as one may be; who finds no room waits. Most messages are here with the first bytes of their call,
and are read without a wait.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Reading:
    """Rooms for messages that are being received. A tenant that sends slowly keeps its own rooms and no others."""

    def __init__(self, *, max_bytes: int, max_tenant_bytes: int, max_message_bytes: int) -> None:
        self._rooms = asyncio.Semaphore(max(1, max_bytes // max_message_bytes))
        self._rooms_each = max(1, max_tenant_bytes // max_message_bytes)
        self._tenants: dict[str, asyncio.Semaphore] = {}
        self._num_users: dict[str, int] = {}
        """Calls of each tenant that read or wait; a tenant without any is forgotten."""

    @property
    def num_tenants(self) -> int:
        """Tenants that are kept in memory."""
        return len(self._tenants)

    @asynccontextmanager
    async def room(self, tenant: str) -> AsyncIterator[None]:
        """Waits for room for one message of the tenant's, and keeps it for the block."""
        own = self._tenants.setdefault(tenant, asyncio.Semaphore(self._rooms_each))
        self._num_users[tenant] = self._num_users.get(tenant, 0) + 1
        try:
            async with own, self._rooms:
                yield
        finally:
            self._num_users[tenant] -= 1
            if not self._num_users[tenant]:
                del self._num_users[tenant], self._tenants[tenant]
