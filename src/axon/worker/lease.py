"""The worker's lease: taken, renewed, and known to hold by the worker's own monotonic clock. Knows no job.

On a shared service the lease is renewed from a thread with a connection of its own, so that an event loop that is
blocked for a while, by a long garbage collection or a slow call, loses no job. An embedded twin lives in the worker's
own process: whoever could find the lease lapsed is blocked with it, so that a task on the loop is enough.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import structlog

from axon.errors import AxonError
from axon.ownership.liveness import Liveness
from axon.ports.live import Leases
from axon.runtime.clock import Clock
from axon.telemetry.sparse import Sparse
from axon.worker.config import WorkerConfig

_logger = structlog.get_logger("axon.worker")


class Lease(Protocol):
    """A worker's lease; its one owner opens, runs and closes it."""

    @property
    def holds(self) -> bool:
        """Whether the lease cannot have lapsed, by our own clock alone."""

    @property
    def renewed_at(self) -> float:
        """Monotonic time of the last renewal that the service took."""

    async def open(self) -> None:
        """Takes the lease."""

    async def run(self) -> None:
        """Renews it until cancelled."""

    async def aclose(self) -> None:
        """Drops the lease now, so that nobody waits for it to lapse."""


def make_lease(owner: str, leases: Leases, liveness: Liveness, config: WorkerConfig, clock: Clock) -> Lease:
    """Makes the kind of lease that the service needs."""
    connect = leases.for_thread(deadline_s=config.renew_s)
    if connect is None:
        return LoopLease(owner, leases, liveness, config, clock)
    return ThreadLease(owner, connect, liveness, config, clock)


class LoopLease:
    """A lease that is renewed by a task on the worker's event loop."""

    def __init__(self, owner: str, leases: Leases, liveness: Liveness, config: WorkerConfig, clock: Clock) -> None:
        self._owner, self._leases, self._liveness = owner, leases, liveness
        self._config, self._clock = config, clock
        self._until = 0.0

    @property
    def holds(self) -> bool:
        return self._clock.monotonic() < self._until

    @property
    def renewed_at(self) -> float:
        return self._until - self._config.lease_s

    async def open(self) -> None:
        await self._hold()

    async def run(self) -> None:
        while True:
            with contextlib.suppress(AxonError):
                await self._hold()
            await asyncio.sleep(self._config.renew_s)

    async def aclose(self) -> None:
        await self._leases.drop(self._owner)

    async def _hold(self) -> None:
        asked_at = self._clock.monotonic()
        await self._leases.hold(self._owner, self._config.lease_s)
        self._until = asked_at + self._config.lease_s
        await self._liveness.look()


class ThreadLease:
    """A lease that is renewed by a thread, which also watches the event loop.

    A loop that has not run for ``stall_timeout_s`` hangs: its lease is renewed no more, else its jobs would wait for it
    for ever.
    """

    def __init__(
        self,
        owner: str,
        connect: Callable[[], AbstractAsyncContextManager[Leases]],
        liveness: Liveness,
        config: WorkerConfig,
        clock: Clock,
    ) -> None:
        self._owner, self._connect, self._liveness = owner, connect, liveness
        self._config, self._clock = config, clock
        # Each is one value, written by one side and read by the other, so that no lock is needed.
        self._until = 0.0
        self._moved_at: float | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        """The exception that ended the thread."""

    @property
    def holds(self) -> bool:
        return self._clock.monotonic() < self._until

    @property
    def renewed_at(self) -> float:
        return self._until - self._config.lease_s

    async def open(self) -> None:
        """Returns when the thread has the lease; raises what kept the thread from taking it."""
        taken: Future[None] = Future()
        taken.set_running_or_notify_cancel()  # so that a cancelled wait does not keep the thread from setting a result
        self._stopping.clear()
        self._failure = None
        self._thread = threading.Thread(target=self._live, args=(taken,), name="lease", daemon=True)
        self._thread.start()
        try:
            await asyncio.wrap_future(taken)
        except BaseException:
            await self.aclose()
            raise

    async def run(self) -> None:
        """Shows the thread that the loop runs, and looks at the leases; raises when the thread has died."""
        while True:
            if self._failure is not None:
                raise RuntimeError("The thread that renews the lease has died.") from self._failure
            self._moved_at = self._clock.monotonic()
            with contextlib.suppress(AxonError):
                await self._liveness.look()
            await asyncio.sleep(self._config.renew_s)

    async def aclose(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stopping.set()
            await asyncio.to_thread(thread.join)

    # --- in the thread

    def _live(self, taken: "Future[None]") -> None:
        try:
            asyncio.run(self._renew(taken))
        except Exception as error:
            if taken.done():
                _logger.exception("lease.thread_failed", next="the worker ends")
                self._failure = error
            else:
                taken.set_exception(error)

    async def _renew(self, taken: "Future[None]") -> None:
        async with self._connect() as leases:
            await self._hold(leases)
            taken.set_result(None)
            failures = Sparse()
            # The wait blocks this thread's own event loop, which has nothing else to do.
            while not self._stopping.wait(self._config.renew_s):
                if self._stalled():
                    continue
                try:
                    await self._hold(leases)
                    failures.reset()
                except AxonError as error:
                    if (held_back := failures.pass_at(self._clock.monotonic())) is not None:
                        _logger.warning("lease.not_renewed", error=str(error), holds=self.holds, not_logged=held_back)
            with contextlib.suppress(AxonError):
                await leases.drop(self._owner)

    async def _hold(self, leases: Leases) -> None:
        asked_at = self._clock.monotonic()
        await leases.hold(self._owner, self._config.lease_s)
        self._until = asked_at + self._config.lease_s

    def _stalled(self) -> bool:
        """Whether the worker's loop hangs; False before it has run at all."""
        if self._moved_at is None:
            return False
        still_s = self._clock.monotonic() - self._moved_at
        if still_s > self._config.stall_timeout_s and self.holds:
            _logger.error("loop.stalled", still_s=round(still_s), next="the lease is renewed no more")
        return still_s > self._config.stall_timeout_s
