"""Ends streams whose reader's key was revoked, within a second of the revocation. Knows no stream's content."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection

from axon.errors import AxonError
from axon.gateway.turn.follow import Follower

_MARKS_POLL_S, _STORE_POLL_S = 0.3, 0.7
"""How often ``live`` is asked, and the store, which costs more: both find a revocation within a second."""

Look = Callable[[Collection[str]], Awaitable[frozenset[str]]]
"""A source of revocations: takes ids of keys and returns those that are revoked."""


class RevokedKeys:
    """Polls ``live`` and the store for the revoked ones of the keys of all readers in this process.

    Each source has its own task, so that one that is down or slow does not delay the others.
    """

    def __init__(self, follower: Follower, marked: Look, stored: Look) -> None:
        """``marked`` asks ``live``, and ``stored`` the store."""
        self._follower = follower
        self._sources = ((marked, _MARKS_POLL_S), (stored, _STORE_POLL_S))

    async def run(self) -> None:
        """Polls until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for look, every_s in self._sources:
                tasks.create_task(self._poll(look, every_s))

    async def _poll(self, look: Look, every_s: float) -> None:
        """Polls one source; while it does not answer, its revocations wait."""
        while True:
            await asyncio.sleep(every_s)
            with contextlib.suppress(AxonError):
                if key_ids := self._follower.key_ids:
                    await self._follower.revoke(await look(key_ids))
