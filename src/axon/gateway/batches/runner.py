"""Runs batches at a gateway: takes those that nobody holds, keeps their leases, and deletes what is too old.

Every gateway has one. A batch belongs to whoever has its lease in the store; when a gateway dies, its leases lapse and
another one goes on. The lease saves work and nothing else depends on it: two gateways that run the same batch for a
while find the same turns and store each line's result once.
"""

import asyncio
import contextlib
import secrets

import structlog

from axon.domain.batch import Batch
from axon.errors import AxonError
from axon.gateway.batches.driver import Driver
from axon.gateway.batches.driver_parts import DriverParts
from axon.runtime.tasks import end, outcome, race

_KEPT_PARTS = 3
"""A lease is renewed at least this many times in its length."""
_CLEAN_S = 60.0
_CUT_OFF_S = 24 * 3600.0
"""Files without a record are deleted after this time: an upload was cut off between its bytes and its record."""
_REST_S = 5.0
"""A batch that cannot go on for now is taken again after this time."""
_PAGE = 100

_logger = structlog.get_logger("axon.batches")


class BatchRunner:
    """Runs batches; at its end it gives its leases up, so that others need not wait."""

    def __init__(self, parts: DriverParts, *, name: str, stopping: asyncio.Event) -> None:
        """``stopping`` is set when the process is to stop."""
        self._parts, self._name, self._stopping = parts, name, stopping
        self._driving: dict[str, asyncio.Task[None]] = {}
        self._woken = asyncio.Event()
        self._cleaned_at = parts.clock.monotonic()
        self._swept = ""
        """The file up to which bytes without a record were looked for."""

    def wake(self) -> None:
        """Has it look for batches now."""
        self._woken.set()

    async def run(self) -> None:
        """Runs batches until the process is to stop, or until it is cancelled: a process that stops asks no more lines,
        and those that it has asked go on in the fleet."""
        try:
            await race(asyncio.create_task(self._look_on()), asyncio.create_task(self._stopping.wait()))
        finally:
            await end(*self._driving.values())

    async def _look_on(self) -> None:
        while True:
            try:
                await self._look()
                await self._clean()
            except AxonError as error:
                _logger.warning("batches.look_failed", error=str(error))
            except Exception:
                _logger.exception("batches.look_failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._parts.config.poll_s):
                    await self._woken.wait()
            self._woken.clear()

    async def _look(self) -> None:
        parts, config = self._parts, self._parts.config
        if (num := config.max_running - len(self._driving)) <= 0:
            return
        now = parts.clock.now()
        holder = f"{self._name}/{secrets.token_hex(4)}"  # a lease that lapsed is not renewed by the drive that had it
        for batch in await parts.batches.take(holder, now=now, until=now + config.lease_s, limit=num):
            if batch.id in self._driving:  # its lease lapsed: that drive finds out and ends, and then it is taken
                await parts.batches.release(batch.id, holder)
                continue
            task = self._driving[batch.id] = asyncio.create_task(self._drive(batch, holder))
            task.add_done_callback(lambda task, batch_id=batch.id: self._ended(batch_id, task))  # type: ignore[misc]

    def _ended(self, batch_id: str, task: "asyncio.Task[None]") -> None:
        if self._driving.get(batch_id) is task:
            del self._driving[batch_id]
        self.wake()

    async def _drive(self, batch: Batch, holder: str) -> None:
        """Drives a batch until it has ended, cannot go on for now, or its lease is lost."""
        driver = Driver(self._parts, batch)
        run, keep = asyncio.create_task(driver.run()), asyncio.create_task(self._keep(batch.id, holder, driver))
        try:
            await race(run, keep)
        finally:
            has_ended, kept = outcome(run), outcome(keep)
            for failed in (has_ended, kept):
                if isinstance(failed, Exception):
                    _logger.error("batch.failed", batch=batch.id, exc_info=failed)
            until = self._parts.clock.now() + _REST_S if has_ended is False else 0.0
            with contextlib.suppress(AxonError):
                await self._parts.batches.release(batch.id, holder, until=until)

    async def _keep(self, batch_id: str, holder: str, driver: Driver) -> None:
        """Renews the lease and tells the driver how the batch stands; returns when another gateway has it."""
        parts, lease_s = self._parts, self._parts.config.lease_s
        held_until = parts.clock.monotonic() + lease_s
        while parts.clock.monotonic() < held_until:
            await asyncio.sleep(min(lease_s / _KEPT_PARTS, parts.config.poll_s))
            now, began = parts.clock.now(), parts.clock.monotonic()
            try:
                batch = await parts.batches.keep(batch_id, holder, until=now + lease_s)
            except AxonError:
                continue
            if batch is None:
                _logger.warning("batch.lease_lost", batch=batch_id)
                return
            held_until = began + lease_s
            driver.note_change(batch)

    async def _clean(self) -> None:
        """Deletes once a minute what is too old: files, ended batches, bytes without a record."""
        parts, clock = self._parts, self._parts.clock
        if clock.monotonic() < self._cleaned_at + _CLEAN_S:
            return
        self._cleaned_at, now = clock.monotonic(), clock.now()
        for file_id in await parts.files.expired(at=now, limit=_PAGE):
            if not await parts.batches.users(file_id):
                await parts.files.remove(file_id)
                await parts.bytes.delete(file_id)
        if old := await parts.bytes.old(before=now - _CUT_OFF_S, limit=_PAGE, after=self._swept):
            for file_id in await parts.files.unknown(old):
                await parts.bytes.delete(file_id)
        self._swept = old[-1] if len(old) == _PAGE else ""
        await parts.batches.purge(created_before=now - parts.config.retention_s)
