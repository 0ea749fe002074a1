"""A distributed lock on a conversation, with an expiry. Knows no history.

It is a crowd of one member, not a value in the cache: a cache may evict the value, which would admit a second holder.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable
from types import TracebackType

from axon.errors import AxonError, Busy
from axon.ports.live import Crowds
from axon.runtime.clock import Clock

_LOCK_S = 15.0
_LEAST_WAIT_S = 1.0
_FIRST_TRY_S, _LONGEST_TRY_S = 0.01, 0.2


class Lock:
    """One holder's lock. ``spoilt`` is called when a change fails, or when the lock expired while it was held."""

    def __init__(self, crowds: Crowds, session: str, spoilt: Callable[[], Awaitable[None]]) -> None:
        self._crowds, self._spoilt = crowds, spoilt
        self._crowd, self._member = f"lock/{session}", secrets.token_hex(8)

    async def take(self, clock: Clock, *, wait_s: float) -> "Lock":
        """Acquires the lock and returns itself, to be entered as a context; raises ``Busy`` after ``wait_s``
        seconds."""
        deadline = clock.monotonic() + max(wait_s, _LEAST_WAIT_S)
        pause_s = _FIRST_TRY_S
        while not await self._crowds.enter(self._crowd, self._member, limit=1, ttl_s=_LOCK_S):
            if clock.monotonic() + pause_s > deadline:
                raise Busy(retry_after_s=1.0)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_TRY_S)
        return self

    async def __aenter__(self) -> "Lock":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(AxonError):
            if error is not None:
                await self._spoilt()
        with contextlib.suppress(AxonError):
            if not await self._crowds.leave(self._crowd, self._member):  # it had expired
                await self._spoilt()
