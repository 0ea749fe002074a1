"""Measures the event loop's lag: how many seconds late it wakes a sleeping task. Knows no metric."""

import asyncio
from collections.abc import Callable

from axon.runtime.clock import Clock

_EVERY_S = 0.5


async def watch_lag(clock: Clock, observe: Callable[[float], None]) -> None:
    """Reports the lag in seconds to ``observe`` twice a second, until cancelled."""
    while True:
        slept_at = clock.monotonic()
        await asyncio.sleep(_EVERY_S)
        observe(max(0.0, clock.monotonic() - slept_at - _EVERY_S))
