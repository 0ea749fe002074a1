"""Ends streams whose reader's key was revoked, within a second of the revocation. Knows no stream's content."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection

from axon.errors import AxonError
from axon.gateway.turn.follow import Follower

_POLL_S = 0.3
"""Each source of revocations is asked this often."""

Look = Callable[[Collection[str]], Awaitable[frozenset[str]]]
"""A source of revocations: takes ids of keys and returns those that are revoked."""


class RevokedKeys:
    """Polls every source of revocations for the keys of all readers in this process, until ``run`` is cancelled.

    Each source has its own task, so that one that is down or slow does not delay the others.
    """

    def __init__(self, follower: Follower, *looks: Look) -> None:
        self._follower, self._looks = follower, looks

    async def run(self) -> None:
        """Polls until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for look in self._looks:
                tasks.create_task(self._poll(look))

    async def _poll(self, look: Look) -> None:
        """Polls one source; while it does not answer, its revocations wait."""
        while True:
            await asyncio.sleep(_POLL_S)
            with contextlib.suppress(AxonError):
                if key_ids := self._follower.key_ids:
                    await self._follower.revoke(await look(key_ids))
