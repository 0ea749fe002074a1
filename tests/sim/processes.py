"""Simulated processes: they die without cleaning up, stand still, and come back as somebody else."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Crash(BaseException):
    """The process is gone; nothing it still does has an effect."""


class Process:
    """The tasks of one incarnation. What a dead one calls raises, what a paused one calls waits."""

    def __init__(self, name: str, on_error: Callable[["Process", BaseException], None]) -> None:
        self.name = name
        self.on_error = on_error
        self.alive = True
        self._going = asyncio.Event()
        self._going.set()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def paused(self) -> bool:
        return not self._going.is_set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._live(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # a task that is cancelled before its first step never began it
        return task

    async def _live(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Crash:
            pass
        except BaseExceptionGroup as group:
            _, rest = group.split(Crash)
            if rest is not None:
                self.on_error(self, rest)
        except Exception as error:
            self.on_error(self, error)

    async def gate(self) -> None:
        """Every step into the world passes here."""
        if not self._going.is_set():
            await self._going.wait()
        if not self.alive:
            raise Crash

    def crash(self) -> None:
        self.alive = False
        self._going.set()
        for task in list(self._tasks):
            task.cancel()

    def pause(self) -> None:
        self._going.clear()

    def go_on(self) -> None:
        self._going.set()
