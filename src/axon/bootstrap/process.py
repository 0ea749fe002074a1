"""Common parts of every process: signals, listeners, probes, and the lifecycle from ready to drained."""

import asyncio
import contextlib
import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from axon.bootstrap.traces import open_traces
from axon.errors import AxonError, DependencyDown, Misconfigured
from axon.profiling.profiler import Profiler
from axon.runtime import failpoints
from axon.runtime.clock import Clock, SystemClock
from axon.runtime.lag import watch_lag
from axon.runtime.lifecycle import Lifecycle
from axon.runtime.tasks import race
from axon.settings import Settings
from axon.telemetry import logs
from axon.telemetry.log_counts import counted_lines
from axon.telemetry.metrics import Metrics
from axon.telemetry.summing import Families, SummedMetrics

if TYPE_CHECKING:
    from axon.telemetry.traces.recorder import Recorder

T = TypeVar("T")
Part = Callable[[], Coroutine[Any, Any, object]]
"""A task that runs concurrently with the others, until it is cancelled or done."""

_STUCK_S = 10.0
"""Seconds without an iteration after which the event loop counts as stuck."""
_DESCRIPTORS = 65536
_SCRAPE_S = 5.0
"""Seconds that the metrics of other processes may take."""
_LEAST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
"""Pauses between two attempts to open the services at a start; each is twice as long as the one before."""

_logger = structlog.get_logger("axon.process")


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """Facts about a running process for the terminal."""

    role: str
    facts: tuple[tuple[str, str], ...]
    pid: int = field(default_factory=os.getpid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Objects of one process, created at its start and passed to its parts."""

    settings: Settings
    clock: Clock = field(default_factory=SystemClock)
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    metrics: Metrics = field(default_factory=Metrics)
    profiler: Profiler = field(default_factory=Profiler)
    """Records profiles of this process."""
    pools: set[str] = field(default_factory=set)
    """The pools whose workers run in this process, and so share its cores."""
    traces: "Recorder | None" = None
    """What exports spans; None where no collector is configured."""

    async def run(
        self,
        parts: Sequence[Part],
        *,
        started: Part,
        drain: Part,
        close: Part | None = None,
        running: Callable[[], str] = str,
    ) -> int:
        """Runs the parts until a signal stops the process; returns the exit code.

        ``started`` is called when all of them run. ``drain`` lets running work end; a timeout or a second signal
        ends it. ``close`` ends what is left. ``running`` describes what a stop must wait for; empty for nothing.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                background = [tasks.create_task(part()) for part in (*parts, self._watch_lag)]
                await started()
                # A full garbage collection stops every thread: it need not walk over what lives as long as the process.
                gc.freeze()
                await self.lifecycle.stopping.wait()
                self.metrics.process.draining.set(1)
                self._say_what_is_waited_for(running())
                await self._unless_hurried(asyncio.sleep(self.settings.lifecycle.notice_s))
                await self._unless_hurried(drain())
                if close is not None:
                    await self._unless_hurried(close())
                for task in background:
                    task.cancel()
        except BaseExceptionGroup as group:
            raise _first(group) from None
        return 0

    async def unless_stopped(self, opening: Awaitable[T]) -> T | None:
        """Awaits ``opening`` and returns its result; cancels it and returns None if the process is stopped first."""
        task = asyncio.ensure_future(opening)
        ended = await race(task, asyncio.create_task(self.lifecycle.stopping.wait()))
        return task.result() if task in ended else None

    async def opened(self, opening: Callable[[AsyncExitStack], Awaitable[T]], stack: AsyncExitStack) -> T | None:
        """Returns what ``opening`` makes, which the stack closes; None if the process is stopped first.

        While a service does not answer, it is tried again for ``lifecycle.start_wait_s``: the machine that it runs on
        may be starting too. Every attempt begins with nothing open.
        """
        deadline, pause_s = self.clock.monotonic() + self.settings.lifecycle.start_wait_s, _LEAST_PAUSE_S
        while True:
            try:
                async with AsyncExitStack() as attempt:
                    made = await self.unless_stopped(opening(attempt))
                    stack.push_async_exit(attempt.pop_all())
                    return made
            except DependencyDown as error:
                left_s = deadline - self.clock.monotonic()
                if not error.retryable or left_s <= 0:
                    raise
                _logger.warning("process.waits", error=error.message, left_s=round(left_s, 1))
            if self.lifecycle.draining:
                return None
            await self.unless_stopped(asyncio.sleep(min(pause_s, left_s)))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    @contextmanager
    def probed(
        self,
        host: str,
        port: int,
        setting: str,
        is_ready: Callable[[], bool],
        others: Callable[[], Coroutine[Any, Any, Sequence[Families]]] | None = None,
    ) -> Iterator[str]:
        """Serves ``/metrics``, ``/livez`` and ``/readyz``; gives the address. The metrics of the processes that
        ``others`` asks are added to those of this one."""
        probes = {"/livez": self._alive, "/readyz": lambda: self._readiness(is_ready)}
        self.metrics.process.ready.set_function(lambda: self._show_readiness(is_ready))
        summed = None if others is None else SummedMetrics(self.metrics.registry, _called_from_thread(others))
        taken, close = listening(host, port, setting, lambda: self.metrics.serve(host, port, probes, summed))
        try:
            yield f"http://{host}:{taken}"
        finally:
            close()

    def _say_what_is_waited_for(self, running: str) -> None:
        """Says what the stop waits for: by a log line where those are JSON, else on stderr at any log level, for the
        person who has pressed ctrl-c."""
        drain_s = self.settings.lifecycle.drain_s
        if running and logs.writes_json():
            _logger.info("process.stopping", work=running, left_s=drain_s)
        elif running:
            print(
                f"axon: stopping; up to {drain_s:g} s are left for {running}. A second ctrl-c ends it at once.",
                file=sys.stderr,
                flush=True,
            )

    def _alive(self) -> str:
        loop_ran_at = self.lifecycle.loop_ran_at
        stuck = loop_ran_at is not None and self.clock.monotonic() - loop_ran_at > _STUCK_S
        return "stuck" if stuck else ""

    def _readiness(self, is_ready: Callable[[], bool]) -> str:
        if self.lifecycle.draining:
            return "draining"
        return "" if self.lifecycle.ready and is_ready() else "starting"

    def _show_readiness(self, is_ready: Callable[[], bool]) -> float:
        return 0.0 if self._readiness(is_ready) else 1.0

    async def _watch_lag(self) -> None:
        def turned(late_s: float) -> None:
            self.metrics.process.event_loop_lag.observe(late_s)
            self.lifecycle.loop_ran_at = self.clock.monotonic()

        await watch_lag(self.clock, turned, self.settings.lifecycle.lag_every_s)

    async def _unless_hurried(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Awaits the work, or the second signal."""
        async with asyncio.TaskGroup() as tasks:
            doing = tasks.create_task(coroutine)
            hurrying = tasks.create_task(self.lifecycle.hurry.wait())
            await asyncio.wait([doing, hurrying], return_when=asyncio.FIRST_COMPLETED)
            doing.cancel()
            hurrying.cancel()


def _called_from_thread(
    others: Callable[[], Coroutine[Any, Any, Sequence[Families]]],
) -> Callable[[], Sequence[Families]]:
    """``others``, awaited in this loop, for the thread that serves the metrics."""
    loop = asyncio.get_running_loop()
    return lambda: asyncio.run_coroutine_threadsafe(others(), loop).result(_SCRAPE_S)


@contextmanager
def started(settings: Settings, service: str = "axon") -> Iterator[Process]:
    """A process with signal handlers: the first SIGTERM or ctrl-c drains, the second one ends it at once. ``service``
    is its name in traces."""
    failpoints.arm(settings.failpoints)
    _raise_descriptors()
    metrics = Metrics(settings.metrics.compat)
    process = Process(settings=settings, metrics=metrics, traces=open_traces(settings.traces, metrics, service=service))
    lifecycle = process.lifecycle

    def heed() -> None:
        (lifecycle.hurry.set if lifecycle.draining else lifecycle.stop)()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heed)
    try:
        with counted_lines(process.metrics):
            yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        if process.traces is not None:
            process.traces.close()


def counted(number: int, noun: str) -> str:
    """``2 answers``, ``1 answer``; empty for none."""
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""


def _raise_descriptors() -> None:
    """Raises the limit of open files to the hard limit (at most 65536); the default is often below the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@contextmanager
def bound(host: str, port: int, setting: str) -> Iterator[socket.socket]:
    """Binds a socket before anything slow is done."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening(host, port, setting, lambda: listener.bind((host, port)))
        yield listener


@contextmanager
def bound_together(host: str, port: int, setting: str, num: int) -> Iterator[list[socket.socket]]:
    """Binds several sockets to one port, among which the kernel spreads the connections (SO_REUSEPORT).

    The first is bound without the option, which fails if another server has the port; the option would share it.
    """
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(bound(host, port, setting))
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listeners = [first]
        for _ in range(num - 1):
            each = stack.enter_context(socket.socket(first.family))
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            each.bind(first.getsockname())
            listeners.append(each)
        yield listeners


def listening(host: str, port: int, setting: str, bind: Callable[[], T]) -> T:
    """Calls ``bind`` and returns its result; raises ``Misconfigured`` if the address cannot be bound."""
    try:
        return bind()
    except OSError as error:
        raise Misconfigured(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another address, or another port with {setting}."
        ) from None


@contextmanager
def announced(path: Path, url: str) -> Iterator[None]:
    """Writes the server's URL to the data folder, where the command line finds it."""
    path.write_text(url + "\n")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if path.read_text().strip() == url:  # otherwise another server has written it since
                path.unlink()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to report: the first ``AxonError`` if the group has no other errors, else the group."""
    ours, others = group.split(AxonError)
    if ours is None or others is not None:
        return group
    error: BaseException = ours
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
