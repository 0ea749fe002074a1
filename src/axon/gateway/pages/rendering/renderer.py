"""Has texts rendered by processes of their own, each started when it is needed. Knows no HTML and no request.

A text that costs too much, crashes its process or takes too much memory is shown as plain text, to its reader alone:
its process is replaced, and the next text is rendered as if the one before had never been. Until the new process is
ready, the text's tenant gets no other, so that a tenant that ends process after process, or leaves again and again,
delays its own texts alone.
"""

import asyncio
from dataclasses import dataclass, field

import structlog

from axon.errors import Draining, Overloaded, TooLarge, Unavailable
from axon.gateway.pages.rendering.answers import MAX_BYTES, NOT_FORMATTED, html_in
from axon.gateway.pages.rendering.idle import idle
from axon.gateway.pages.rendering.plain import MAX_CHARS, plain
from axon.gateway.pages.rendering.queue import RenderQueue
from axon.runtime.child import Connected, launch_module
from axon.runtime.clock import Clock, SystemClock
from axon.runtime.task_process import Died, NotStarted, TaskProcess
from axon.runtime.tasks import end
from axon.telemetry.declared.work import RenderMetrics
from axon.telemetry.metrics import Metrics

_PROCESSES = 2
"""A tenant's text takes one at most, so that another tenant finds one free. The second is started when it is needed."""
_MAX_CPU_S = 1.0
"""Processor time for one text."""
_ANSWER_S = 5.0
"""Seconds for one text, after which its process is killed: it may have to wait for a processor."""
_START_S = 10.0
"""Seconds in which a process must be ready."""
_WAIT_S = 15.0
"""Seconds after which a text that still waits for a process is refused."""
_MAX_TRIES = 2
"""Processes that one text may end. Another text, or the system for want of memory, may have ended the first."""
_IDLE_S = 300.0
"""Seconds without a text after which a process ends: it holds 40 MB, and the next text starts another."""
_MAX_WAITING_OF_TENANT, _MAX_WAITING = 64, 512

_logger = structlog.get_logger("axon.pages")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text as HTML."""

    html: str
    is_plain: bool = False
    """Whether it has no formatting, because that would cost too much."""


@dataclass(slots=True, eq=False)
class _Waiter:
    """A text that waits for a process, and the process that it is given."""

    tenant: str
    given: asyncio.Future[TaskProcess] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    has_left: bool = False
    """Whether its reader has gone."""


class Renderer:
    """Renders texts of tenants, one of each tenant at a time."""

    def __init__(
        self, *, max_cpu_s: float = _MAX_CPU_S, clock: Clock | None = None, metrics: RenderMetrics | None = None
    ) -> None:
        self._metrics = metrics or Metrics().renders
        self._clock = clock or SystemClock()
        self._max_cpu_s = max_cpu_s
        self._queue: RenderQueue[_Waiter] = RenderQueue(max_of_tenant=_MAX_WAITING_OF_TENANT, max_in_all=_MAX_WAITING)
        self._processes = [
            TaskProcess(
                self._launch,
                on_death=lambda code, deaths: _logger.info("renderer.died", exit_code=code, deaths=deaths),
                on_not_started=lambda reason: _logger.warning("renderer.not_started", reason=reason),
                max_answer_bytes=MAX_BYTES,
            )
            for _ in range(_PROCESSES)
        ]
        self._free = list(self._processes)
        self._free_since: dict[TaskProcess, float] = {}
        """When each free process that was started had its last text, by the monotonic clock."""
        self._idle_timer: asyncio.TimerHandle | None = None
        self._working: set[asyncio.Task[Rendered]] = set()
        """Texts that have a process, whether or not somebody still waits for them."""
        self._restoring: set[asyncio.Task[None]] = set()
        """Waits for processes that texts have ended, and ends of those that nobody needs."""
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        """The processes that there are now."""
        return [each.pid for each in self._processes if each.pid is not None]

    def warm(self) -> None:
        """Starts a process, if none was started before."""
        if not self._is_closed:
            self._processes[0].warm()
            if self._processes[0] in self._free:
                self._note_free(self._processes[0])

    async def rendered(self, tenant: str, text: str) -> Rendered:
        """Returns the Markdown as HTML. Being cancelled ends the wait for a process; a text that has one keeps it to
        its end, which is near: to kill it would cost more than most texts do.

        Raises ``TooLarge`` for a text that is not rendered, ``LimitReached`` or ``Overloaded`` if too many wait,
        ``Unavailable`` if no process can be started, and ``Draining`` once this is closed.
        """
        if len(text) > MAX_CHARS:
            raise TooLarge(f"The text has {len(text)} characters; at most {MAX_CHARS} are rendered. Show it as it is.")
        if self._is_closed:
            raise Draining(retry_after_s=1.0)
        waiter = _Waiter(tenant)
        if (displaced := self._queue.add(tenant, waiter)) is not None:
            displaced.given.set_exception(Overloaded(retry_after_s=1.0))
        self._give()
        try:
            with self._metrics.waiting.track_inprogress():
                async with asyncio.timeout(_WAIT_S):
                    process = await asyncio.shield(waiter.given)
        except BaseException as error:
            self._withdraw(waiter)
            if isinstance(error, TimeoutError):
                raise Overloaded(retry_after_s=1.0) from None
            raise
        work = self._begin(process, waiter, text)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            waiter.has_left = True
            if work.cancelled() and self._is_closed:
                raise Draining(retry_after_s=1.0) from None
            raise

    async def aclose(self) -> None:
        """Ends the processes. Those that wait for them get ``Draining``."""
        self._is_closed = True
        for waiter in self._queue.take_all():
            waiter.given.set_exception(Draining(retry_after_s=1.0))
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        await end(*self._working)
        await end(*self._restoring)
        await asyncio.gather(*(each.aclose() for each in self._processes))

    def _give(self) -> None:
        """Gives free processes to the texts that are next: ready ones first, and a new one last."""
        while self._free and not self._is_closed and (waiter := self._queue.take()) is not None:
            process = min(self._free, key=lambda each: (not each.is_ready, not each.is_started))
            self._free.remove(process)
            self._free_since.pop(process, None)
            waiter.given.set_result(process)

    def _withdraw(self, waiter: _Waiter) -> None:
        """Ends the wait of a text that has not begun, whether it was given a process or not."""
        self._queue.drop(waiter.tenant, waiter)
        if waiter.given.done() and waiter.given.exception() is None:
            self._take_back(waiter.tenant, waiter.given.result(), 0.0)

    def _take_back(self, tenant: str, process: TaskProcess, seconds: float) -> None:
        """Frees the process that the tenant had for so long, and gives it to the text that is next."""
        self._free.append(process)
        self._note_free(process)
        self._queue.done(tenant, seconds)
        self._give()

    def _note_free(self, process: TaskProcess) -> None:
        """Notes that the process has no text from now on, and looks at it again when it has had none for long."""
        self._free_since[process] = self._clock.monotonic()
        if self._idle_timer is None and not self._is_closed:
            self._idle_timer = asyncio.get_running_loop().call_later(_IDLE_S, self._end_idle)

    def _end_idle(self) -> None:
        """Ends the processes that have had no text for long."""
        due, left_s = idle(self._free_since, self._clock.monotonic(), _IDLE_S)
        for process in due:
            del self._free_since[process]
            self._free.remove(process)
            resting = asyncio.create_task(self._rest(process))
            self._restoring.add(resting)
            resting.add_done_callback(self._restoring.discard)
        loop = asyncio.get_running_loop()
        self._idle_timer = None if left_s is None else loop.call_later(left_s, self._end_idle)

    async def _rest(self, process: TaskProcess) -> None:
        """Ends a process; it is free when it has ended, and starts again with the next text."""
        await process.rest()
        self._free.append(process)
        self._give()

    def _begin(self, process: TaskProcess, waiter: _Waiter, text: str) -> asyncio.Task[Rendered]:
        began = self._clock.monotonic()
        work = asyncio.create_task(self._made(process, waiter, text))
        self._working.add(work)

        def ended(_: asyncio.Task[Rendered]) -> None:
            self._working.discard(work)
            work.cancelled() or work.exception()  # its reader may have left
            if process.is_ready:
                self._take_back(waiter.tenant, process, self._clock.monotonic() - began)
            elif not self._is_closed:
                restoring = asyncio.create_task(self._restored(process, waiter.tenant, began))
                self._restoring.add(restoring)
                restoring.add_done_callback(self._restoring.discard)

        work.add_done_callback(ended)
        return work

    async def _restored(self, process: TaskProcess, tenant: str, began: float) -> None:
        """Takes a process back when it is ready again, and charges the tenant for all the time since its text began."""
        await process.ready(_START_S)
        self._take_back(tenant, process, self._clock.monotonic() - began)

    async def _made(self, process: TaskProcess, waiter: _Waiter, text: str) -> Rendered:
        answer, result = NOT_FORMATTED, "too_costly"
        body = text.encode(errors="replace")
        began = self._clock.monotonic()
        for _ in range(_MAX_TRIES):
            try:
                answer = await process.ask(body, start_s=_START_S, answer_s=_ANSWER_S)
                break
            except NotStarted:
                self._metrics.texts.labels("not_started").inc()
                raise Unavailable("The process that renders texts does not start.", retry_after_s=1.0) from None
            except TimeoutError:
                result = "timeout"
                break
            except Died as death:
                if self._is_closed:
                    raise Draining(retry_after_s=1.0) from None
                result = "too_costly" if death.took_too_long else "crash"
                if death.took_too_long or waiter.has_left:
                    break
        html = html_in(answer)
        self._metrics.texts.labels("formatted" if html is not None else result).inc()
        self._metrics.seconds.observe(self._clock.monotonic() - began)
        return Rendered(plain(text), is_plain=True) if html is None else Rendered(html)

    async def _launch(self) -> Connected:
        seconds = str(self._max_cpu_s)
        return await launch_module(
            "axon.gateway.pages.rendering.process", lambda socket_fd: (str(socket_fd), seconds), has_secrets=False
        )
