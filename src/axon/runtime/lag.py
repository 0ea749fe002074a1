"""Measures the event loop's lag: how many seconds late it wakes a sleeping task. Knows no metric."""

import asyncio
from collections.abc import Callable

from axon.runtime.clock import Clock


async def watch_lag(clock: Clock, observe: Callable[[float], None], every_s: float) -> None:
    """Reports the lag in seconds to ``observe`` every ``every_s`` seconds, until cancelled."""
    while True:
        slept_at = clock.monotonic()
        await asyncio.sleep(every_s)
        observe(max(0.0, clock.monotonic() - slept_at - every_s))
