"""Ends what is read with a key that was revoked meanwhile, within a second. Knows no stream's content."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection

from axon.errors import AxonError
from axon.gateway.turn.follow import Follower

_LOOK_S = 0.3

Look = Callable[[Collection[str]], Awaitable[frozenset[str]]]
"""Takes ids of keys, returns those that are revoked."""


class Evicting:
    """Looks at the keys of all who read here, in every place that knows of revocations: ``run`` until cancelled.

    Each place by itself: one that is away or slow keeps nobody from hearing the other.
    """

    def __init__(self, follower: Follower, *looks: Look) -> None:
        self._follower, self._looks = follower, looks

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for look in self._looks:
                tasks.create_task(self._watch(look))

    async def _watch(self, look: Look) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            with contextlib.suppress(AxonError):
                if key_ids := self._follower.key_ids:
                    await self._follower.revoke(await look(key_ids))
