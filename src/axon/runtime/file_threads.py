"""Runs blocking calls on files beside the event loop, in threads of their own. Knows no file.

A network disk that is away may block its threads for good. In the event loop's own executor, which has a few threads
more than there are cores, that would stop everything else that needs one.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

from axon.runtime.tasks import settled

P = ParamSpec("P")
T = TypeVar("T")


class FileThreads:
    """A pool of daemon threads for blocking calls on one kind of files; a forked process makes a pool of its own."""

    def __init__(self, name: str, most: int) -> None:
        self._name, self._most = name, most
        self._threads, self._process = _Threads(name, most), os.getpid()

    def begin(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queues the call for a thread."""
        if self._process != os.getpid():  # forked: the threads stay in the parent
            self._threads, self._process = _Threads(self._name, self._most), os.getpid()
        return self._threads.submit(call, *args, **kwargs)

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """``asyncio.to_thread`` in these threads: if it is cancelled, a call that has begun goes on without it."""
        return await asyncio.wrap_future(self.begin(call, *args, **kwargs))

    async def run_and_wait(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As ``run``, but waits for the call even when it is cancelled, so that its file can be closed then.
        Cancelled once more, it leaves a call that hangs behind."""
        begun = self.begin(call, *args, **kwargs)
        running = asyncio.wrap_future(begun)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if not begun.cancel():  # a thread has it
                await asyncio.wait([running])
                running.exception()  # seen; the cancellation goes first
            raise

    async def run_to_end(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As ``run_and_wait``, however often it is cancelled: until the call is over it may use a descriptor, whose
        number must not be given to another file."""
        begun = self.begin(call, *args, **kwargs)
        running = asyncio.wrap_future(begun)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if not begun.cancel():
                await settled(running)
            raise


class _Threads(Executor):
    """Threads that are started as they are needed. A process ends without them, so that no call that hangs keeps it."""

    def __init__(self, name: str, most: int) -> None:
        self._name, self._most = name, most
        self._num_started = self._num_idle = 0
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._news = threading.Condition()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future = Future[T]()
        with self._news:
            self._calls.append((future, partial(fn, *args, **kwargs)))
            if self._num_idle >= len(self._calls):
                self._news.notify()
            elif self._num_started < self._most:
                name = f"{self._name}-{self._num_started + 1}"
                try:
                    threading.Thread(target=self._work, name=name, daemon=True).start()
                except RuntimeError:  # the system has no more threads
                    self._calls.pop()
                    raise
                self._num_started += 1
        return future

    def _work(self) -> None:
        while True:
            _run(*self._next())

    def _next(self) -> tuple[Future[Any], Callable[[], Any]]:
        with self._news:
            self._num_idle += 1
            while not self._calls:
                self._news.wait()
            self._num_idle -= 1
            return self._calls.popleft()


def _run(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # the caller's to see, whatever it is
        future.set_exception(error)
    else:
        future.set_result(result)
