"""The lines of a batch that are under way: asks them, waits for their answers and stores the results. Knows no file."""

import asyncio
from typing import TYPE_CHECKING

from axon.domain.batch import Batch, Result
from axon.domain.tenants.tenant import Terms
from axon.gateway.batches.driver_parts import DriverParts
from axon.gateway.batches.lines import Line
from axon.gateway.batches.results import PAGE_BYTES, answered, pages
from axon.gateway.batches.verdict import Verdict, verdict_of, wait_s
from axon.runtime.failpoints import failpoint
from axon.runtime.tasks import end

if TYPE_CHECKING:
    from axon.gateway.batches.calls import Call

_LOOK_S = 0.5
"""A batch whose lines all wait looks this often whether it is to stop."""
_IN_FLIGHT_BYTES = 16 << 20
"""Bytes of the requests that are under way at once."""
_PATIENCE_S = 30.0
"""A batch that has no line accepted for so long gives its place to another one."""


class Standstill(Exception):
    """No line of the batch can be asked for now: its tenant is suspended or its budget is spent."""


class Running:
    """The lines that are under way, at most as many as there is room for, and their results until these are stored."""

    def __init__(self, parts: DriverParts, batch: Batch, stopped: asyncio.Event) -> None:
        self._parts, self._batch, self._stopped = parts, batch, stopped
        self._tasks: dict[asyncio.Task[Result | None], int] = {}
        """The lines that are under way, each with its number of bytes."""
        self._calls: dict[int, Call] = {}
        """The call of each line that is under way, by line."""
        self._results: list[Result] = []
        self._num_paused = 0
        self._accepted_at = parts.clock.monotonic()
        """When a line was last accepted."""
        self.is_cut = False
        """Whether a line was left without a result."""

    def start(self, line: Line, terms: Terms) -> None:
        """Asks a line."""
        self._tasks[asyncio.create_task(self._ask(line, terms))] = len(line.body)

    async def room(self, num: int, num_bytes: int) -> None:
        """Waits until fewer than ``num`` lines are under way and there is room for one of ``num_bytes``, or no more are
        to be asked. A line always has room by itself."""
        while not self._is_over() and (
            len(self._tasks) >= num or (self._tasks and sum(self._tasks.values()) + num_bytes > _IN_FLIGHT_BYTES)
        ):
            await self._collect()

    async def all_done(self) -> None:
        """Waits for every line that is under way; stops them when the batch is over."""
        while self._tasks:
            if self._is_over():
                await asyncio.gather(*(call.stop() for call in self._calls.values()))
            await self._collect()
        await self._store()

    async def leave(self) -> None:
        """Leaves what is under way: its turns go on, and whoever runs the batch next finds them."""
        await end(*self._tasks)

    def _is_over(self) -> bool:
        return self._stopped.is_set() or self._parts.clock.now() >= self._batch.expires_at

    async def _collect(self) -> None:
        """Waits a while for lines to be answered, and stores the results."""
        done, _ = await asyncio.wait(self._tasks, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            del self._tasks[task]
            if result := task.result():
                self._results.append(result)
            else:
                self.is_cut = True
        await self._store()
        if self._is_still():
            raise Standstill

    def _is_still(self) -> bool:
        """Whether every line was refused for a while, as when its tenant's budget is spent."""
        is_idle = bool(self._tasks) and self._num_paused == len(self._tasks) and not self._is_over()
        return is_idle and self._parts.clock.monotonic() - self._accepted_at >= _PATIENCE_S

    async def _store(self) -> None:
        for page in pages(self._results, PAGE_BYTES):
            await self._parts.batches.put_results(self._batch.id, page)
            for each in page:
                self._parts.metrics.lines.labels("completed" if each.ok else "failed").inc()
        self._results = []
        failpoint("batch.results_stored")

    async def _ask(self, line: Line, terms: Terms) -> Result | None:
        """Asks a line until it has its answer or its error; None if the batch is over before."""
        attempt, num_waits, attempts = 1, 0, self._parts.config.max_attempts
        self._parts.metrics.running.inc()
        try:
            while not self._is_over():
                call = self._calls[line.number] = self._parts.calls.call(self._batch, line, terms, attempt)
                answer = await call.send()
                verdict = verdict_of(answer, attempt, attempts)
                if verdict is not Verdict.WAIT:
                    self._accepted_at = self._parts.clock.monotonic()
                match verdict:
                    case Verdict.DONE | Verdict.FAILED if answer.status < 300 or not self._is_over():
                        return answered(self._batch, line, answer, call.request_id)
                    case Verdict.RETRY:
                        attempt += 1
                    case _:
                        await self._pause(wait_s(answer, num_waits))
                        num_waits += 1
        finally:
            self._parts.metrics.running.dec()
            self._calls.pop(line.number, None)
        return None

    async def _pause(self, seconds: float) -> None:
        """Waits, but no longer than until the batch is to stop."""
        left_s = max(0.0, self._batch.expires_at - self._parts.clock.now())
        self._num_paused += 1
        try:
            async with asyncio.timeout(min(seconds, left_s)):
                await self._stopped.wait()
        except TimeoutError:
            pass
        finally:
            self._num_paused -= 1
