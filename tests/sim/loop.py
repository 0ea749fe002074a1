"""An event loop whose time is a number: nothing waits, everything that sleeps is woken in order, the same each run."""

import asyncio
import heapq
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


class Stuck(Exception):
    """Nothing is left to run and nothing is waited for."""


class SimLoop(asyncio.BaseEventLoop):
    """Runs tasks in virtual time. Does no I/O, so a second costs what happens in it."""

    def __init__(self, epoch: float = 1_700_000_000.0) -> None:
        super().__init__()
        self._selector = self  # what the base class asks for events, and how long it may wait
        self._scheduled: list[asyncio.TimerHandle]
        self._now = 0.0
        self._epoch = epoch

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        """No events: time passes instead."""
        if timeout is None:
            raise Stuck("nothing is left to happen")
        if timeout > 0:
            self._now = max(self._now, self._scheduled[0].when() if self._scheduled else self._now)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run(self, main: Awaitable[T]) -> T:
        """Runs to the end of ``main`` and closes the loop, whatever is left in it."""
        asyncio.set_event_loop(self)
        try:
            return self.run_until_complete(main)
        finally:
            self._abandon()
            asyncio.set_event_loop(None)
            self.close()

    def _abandon(self) -> None:
        """Ends what still runs, as the end of the world does."""
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            task.cancel()
        for _ in range(50):
            if all(task.done() for task in tasks):
                break
            self.call_soon(self.stop)
            self.run_forever()
        self._scheduled.clear()
        heapq.heapify(self._scheduled)

    def now(self) -> float:
        """Unix time, for a Clock."""
        return self._epoch + self._now

    def monotonic(self) -> float:
        return self._now
