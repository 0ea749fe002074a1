"""A process that does tasks for this one, one at a time: started when it is needed, replaced when it dies, ended with
its owner. Knows no task.

It is for work over what clients wrote that may crash, compute for ever or take all memory: that ends the process and
nothing else. Its program is made of ``runtime.task_program``.
"""

import asyncio
import contextlib
import contextvars
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from axon.runtime.child import Connected
from axon.runtime.clock import Clock, SystemClock
from axon.runtime.framing import MAX_FRAME_BYTES, BadFrame, Framer, framed
from axon.runtime.tasks import end, settled

_READ_BYTES = 1 << 16
_FIRST_DELAY_S, _MAX_DELAY_S = 0.1, 1.0
"""Delay before a new process (exponential backoff). Tasks of all tenants wait for it, at most 1 s."""
_CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})
"""Signals by which a task ends its own process. SIGKILL is none of them: it may be the system's, for want of memory."""


def delay_s(num_deaths: int) -> float:
    """Returns the delay before a new process, after this many have died with no answer between them."""
    return 0.0 if num_deaths < 2 else min(_MAX_DELAY_S, _FIRST_DELAY_S * 2.0 ** min(num_deaths - 2, 16))


class Died(Exception):
    """The process ended before its answer came."""

    def __init__(self, exit_code: int) -> None:
        self.took_too_long = exit_code == -signal.SIGPROF
        """Whether the task used up its processor time."""
        self.is_of_task = exit_code > 0 or -exit_code in _CRASHES
        """Whether the task itself ended the process, and nothing outside it."""
        self.spent_s = 0.0
        """Seconds from the start of the task to the death."""
        super().__init__(exit_code)


class NotStarted(Exception):
    """No process was ready in time."""


@dataclass(slots=True, kw_only=True)
class _Child:
    """One process, this end of its socket pair, and the answer that it owes."""

    connected: Connected
    answer: asyncio.Future[bytes] | None = None

    def ask(self, body: bytes) -> asyncio.Future[bytes]:
        self.answer = asyncio.get_running_loop().create_future()
        self.connected.writer.write(framed(body))
        return self.answer

    def answered(self, body: bytes) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(body)

    def kill(self) -> None:
        """Kills it past asyncio, whose own way would first look whether it has ended, and so take its exit code from
        whoever waits for it."""
        if self.connected.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.connected.process.pid, signal.SIGKILL)

    async def aclose(self) -> int:
        """Ends the process, which keeps nothing; returns its exit code, which is its own if it has ended by itself. A
        caller that is cancelled meanwhile waits for the end all the same: it comes at once, and must be taken in."""
        self.connected.writer.transport.abort()
        self.kill()
        ending = asyncio.ensure_future(self.connected.process.wait())
        try:
            code = await asyncio.shield(ending)
        finally:
            await settled(ending)
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(Died(code))
        return code


class TaskProcess:
    """Keeps one process, from the first task on or when it is told to be warm."""

    def __init__(
        self,
        launch: Callable[[], Awaitable[Connected]],
        *,
        on_death: Callable[[int, int], None],
        on_not_started: Callable[[str], None],
        max_answer_bytes: int = MAX_FRAME_BYTES,
        clock: Clock | None = None,
    ) -> None:
        """``on_death`` is given the exit code of a process that ended and how many did so since the last answer;
        ``on_not_started`` why the system started none."""
        self._launch = launch
        self._on_death, self._on_not_started = on_death, on_not_started
        self._max_answer_bytes = max_answer_bytes
        self._clock = clock or SystemClock()
        self._supervising: asyncio.Task[None] | None = None
        self._child: _Child | None = None
        self._is_ready = asyncio.Event()
        self._num_deaths = 0
        """Processes that died one after the other, without an answer between them."""

    @property
    def pid(self) -> int | None:
        return self._child.connected.process.pid if self._child else None

    @property
    def is_started(self) -> bool:
        """Whether a process was asked for, which may be on its way."""
        return self._supervising is not None

    @property
    def is_ready(self) -> bool:
        """Whether a task would begin at once."""
        return self._is_ready.is_set()

    def warm(self) -> None:
        """Starts the process, if it was not started before."""
        if self._supervising is None:
            # It outlives the request that asked for it, whose names belong into no later line of the log.
            self._supervising = asyncio.create_task(self._supervise(), context=contextvars.Context())

    async def ready(self, start_s: float) -> bool:
        """Waits until a task would begin at once, at most ``start_s``; returns whether one would."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(start_s):
                while not self._is_ready.is_set():  # it may have died again since it was
                    await self._is_ready.wait()
        return self._is_ready.is_set()

    async def ask(self, body: bytes, *, start_s: float, answer_s: float) -> bytes:
        """Returns the answer to a task; one at a time may be asked.

        Raises ``NotStarted`` if no process is ready after ``start_s``, ``TimeoutError`` if the answer takes longer than
        ``answer_s``, and ``Died`` if the process ends before. A task that is late or cancelled is ended with its
        process.
        """
        self.warm()
        child = await self._ready_child(start_s)
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(answer_s):
                return await child.ask(body)
        except Died as death:
            death.spent_s = self._clock.monotonic() - began
            raise
        except (TimeoutError, asyncio.CancelledError):
            self.replace()
            raise

    def replace(self) -> None:
        """Ends the process at hand, if there is one, so that a new one is started: it is for an owner that cannot read
        an answer."""
        if self._child is not None:
            self._is_ready.clear()
            self._child.kill()

    async def aclose(self) -> None:
        """Ends the process."""
        if self._supervising is not None:
            await end(self._supervising)

    async def rest(self) -> None:
        """Ends the process until a task needs one again. No task may be asked meanwhile."""
        await self.aclose()
        self._supervising = self._child = None
        self._num_deaths = 0

    async def _ready_child(self, start_s: float) -> _Child:
        if not await self.ready(start_s):
            if self._child is not None:
                self._child.kill()
            raise NotStarted
        assert self._child is not None
        return self._child

    async def _supervise(self) -> None:
        while True:
            await asyncio.sleep(delay_s(self._num_deaths))
            try:
                self._child = _Child(connected=await self._launch())
            except OSError as error:
                self._num_deaths += 1
                self._on_not_started(os.strerror(error.errno or 0))
                continue
            try:
                await self._hear(self._child)
            finally:
                self._is_ready.clear()
                code = await self._child.aclose()
            self._num_deaths += 1
            self._on_death(code, self._num_deaths)

    async def _hear(self, child: _Child) -> None:
        """Takes the process's frames until it ends: an empty one when it is ready, then answers."""
        framer = Framer(self._max_answer_bytes)
        with contextlib.suppress(OSError, BadFrame):  # each ends what can be heard of it
            while data := await child.connected.reader.read(_READ_BYTES):
                for body in framer.feed(data):
                    if body:
                        self._num_deaths = 0
                        child.answered(body)
                    else:
                        self._is_ready.set()
