"""The process that compiles grammars, as its gateway sees it: started, asked, replaced when it dies. Knows no tenant.

The compiler is native code that runs over what clients wrote. A crash in it ends this process alone: the task is tried
once more in a new one, and one that ends that too is refused. The process has no secrets: of the gateway's environment
it gets what any Python process needs.
"""

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass
from typing import Protocol

import msgspec
import structlog

from axon.errors import Overloaded, Unavailable
from axon.runtime.child import launch_module
from axon.runtime.clock import Clock, SystemClock
from axon.runtime.framing import BadFrame, Framer
from axon.runtime.tasks import end
from axon.text.compiler.messages import Result, Task, decode_result, encode
from axon.text.compiler.work import NOT_COMPILED

_MAX_TRIES = 2
"""Processes that one task may end. Something else may have ended the first."""
_START_S = 10.0
"""Seconds in which a process must be ready. A task that has waited for it so long is refused with 503."""
_ANSWER_S = 3.0
"""Seconds for one task, all its tries together, after which its process is killed. It is less than a request waits for
its grammars, so that a task that hangs does not take all the time of those behind it."""
_READ_BYTES = 1 << 16
_FIRST_DELAY_S, _MAX_DELAY_S = 0.1, 1.0
"""Delay before a new process (exponential backoff). Tasks of all tenants wait for it, at most 1 s."""
_TOO_LONG = Result(problem="it takes too long to compile")
_CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})
"""Signals by which a task ends its own process. SIGKILL is none of them: it may be the system's, for want of memory."""

_logger = structlog.get_logger("axon.grammars")


class Compiling(Protocol):
    """Compiles one task at a time."""

    def warm(self) -> None:
        """Prepares for the first task."""
        ...

    async def run(self, task: Task) -> Result: ...
    async def aclose(self) -> None: ...


def delay_s(num_deaths: int) -> float:
    """Returns the delay before a new process, after this many have died with no result between them."""
    return 0.0 if num_deaths < 2 else min(_MAX_DELAY_S, _FIRST_DELAY_S * 2.0 ** min(num_deaths - 2, 16))


class _Died(Exception):
    """The process ended before its result came."""

    def __init__(self, exit_code: int) -> None:
        self.took_too_long = exit_code == -signal.SIGXCPU
        self.is_of_task = exit_code > 0 or -exit_code in _CRASHES
        """Whether the task has ended the process, not something outside it."""
        super().__init__(exit_code)


@dataclass(slots=True, kw_only=True)
class _Child:
    """One process, this end of its socket pair, and the result that it owes."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    result: asyncio.Future[Result] | None = None

    def ask(self, task: Task) -> asyncio.Future[Result]:
        self.result = asyncio.get_running_loop().create_future()
        self.writer.write(encode(task))
        return self.result

    def answer(self, body: bytes) -> None:
        if self.result is not None and not self.result.done():
            self.result.set_result(decode_result(body))

    def kill(self) -> None:
        """Kills it past asyncio, whose own way would first look whether it has ended, and so take its exit code from
        whoever waits for it."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)

    async def aclose(self) -> int:
        """Ends the process, which keeps nothing; returns its exit code, which is its own if it has ended by itself."""
        self.writer.transport.abort()
        self.kill()
        code = await self.process.wait()
        if self.result is not None and not self.result.done():
            self.result.set_exception(_Died(code))
        return code


async def _launch(max_cpu_s: int) -> _Child:
    child = await launch_module(
        "axon.text.compiler.process", lambda socket_fd: (str(socket_fd), str(max_cpu_s)), has_secrets=False
    )
    return _Child(process=child.process, reader=child.reader, writer=child.writer)


class Compiler:
    """Keeps one process, from the first task on or when it is told to be warm."""

    def __init__(self, *, max_cpu_s: int = 1, clock: Clock | None = None) -> None:
        """``max_cpu_s`` is the processor time that one task may take. The system counts whole seconds, so that a task
        may take up to one second more."""
        self._max_cpu_s = max_cpu_s
        self._clock = clock or SystemClock()
        self._supervising: asyncio.Task[None] | None = None
        self._child: _Child | None = None
        self._is_ready = asyncio.Event()
        self._num_deaths = 0
        """Processes that died one after the other, without a result between them."""

    @property
    def pid(self) -> int | None:
        return self._child.process.pid if self._child else None

    def warm(self) -> None:
        """Starts the process, if it was not started before."""
        if self._supervising is None:
            self._supervising = asyncio.create_task(self._supervise())

    async def run(self, task: Task) -> Result:
        """Returns the task's result, one task at a time; raises ``Unavailable`` if no process can be had.

        A task that crashes the process twice, or computes for too long, has a result that says so. If something else
        ended a process, the task has no result, and ``Unavailable`` is raised.
        """
        self.warm()
        num_crashes, left_s = 0, _ANSWER_S
        for _ in range(_MAX_TRIES):
            child = await self._ready_child()
            began = self._clock.monotonic()
            try:
                async with asyncio.timeout(left_s):
                    return await child.ask(task)
            except TimeoutError:
                self._is_ready.clear()
                child.kill()
                raise Overloaded(retry_after_s=1.0) from None
            except _Died as death:
                if death.took_too_long:
                    return _TOO_LONG
                num_crashes += death.is_of_task
                left_s -= self._clock.monotonic() - began
        if num_crashes < _MAX_TRIES:
            message = "The process that compiles schemas and grammars was killed; try again soon."
            raise Unavailable(message, retry_after_s=1.0)
        return Result(problem=NOT_COMPILED)

    async def aclose(self) -> None:
        """Ends the process."""
        if self._supervising is not None:
            await end(self._supervising)

    async def _ready_child(self) -> _Child:
        try:
            async with asyncio.timeout(_START_S):
                while not self._is_ready.is_set():  # it may have died again since it was
                    await self._is_ready.wait()
        except TimeoutError:
            if self._child is not None:
                self._child.kill()
            message = "The process that compiles schemas and grammars does not start; try again soon."
            raise Unavailable(message, retry_after_s=1.0) from None
        assert self._child is not None
        return self._child

    async def _supervise(self) -> None:
        while True:
            await asyncio.sleep(delay_s(self._num_deaths))
            try:
                self._child = await _launch(self._max_cpu_s)
            except OSError as error:
                self._num_deaths += 1
                _logger.warning("grammars.compiler_not_started", reason=os.strerror(error.errno or 0))
                continue
            try:
                await self._hear(self._child)
            finally:
                self._is_ready.clear()
                code = await self._child.aclose()
            self._num_deaths += 1
            _logger.warning("grammars.compiler_died", exit_code=code, deaths=self._num_deaths)

    async def _hear(self, child: _Child) -> None:
        """Takes the process's frames until it ends: an empty one when it is ready, then results."""
        framer = Framer()
        with contextlib.suppress(OSError, BadFrame, msgspec.MsgspecError):  # each ends what can be heard of it
            while data := await child.reader.read(_READ_BYTES):
                for body in framer.feed(data):
                    if body:
                        self._num_deaths = 0
                        child.answer(body)
                    else:
                        self._is_ready.set()
