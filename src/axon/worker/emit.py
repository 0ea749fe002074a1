"""Out to the log: one compare-and-set append per job and step, and what each answer means. Knows no engine."""

import asyncio
from typing import Protocol

import structlog

from axon.dispatch.ending import Ending
from axon.domain import record
from axon.domain.chunk import Chunk
from axon.domain.turn import TurnState
from axon.errors import AxonError
from axon.ports.live import Appended, AppendStatus, TokenLog
from axon.ports.queue import Queue
from axon.telemetry.metrics import Metrics
from axon.worker.job.running import Running

_RETRY_S = 0.2

_logger = structlog.get_logger("axon.worker")


class Holder(Protocol):
    """The worker, as the emitter needs it."""

    def holds(self, running: Running) -> bool: ...

    def cancel(self, running: Running) -> None: ...

    def forget(self, running: Running) -> None: ...

    def park(self, running: Running) -> None: ...

    async def restore(self, running: Running) -> bool: ...

    async def note(self, running: Running) -> None:
        """The job has ended well, and its end has been written down."""


class Emitter:
    """Gathers what the running jobs have to tell. While one append is in flight, the next one grows."""

    def __init__(self, *, worker: Holder, log: TokenLog, queue: Queue, ending: Ending, metrics: Metrics) -> None:
        self._worker = worker
        self._log, self._queue, self._ending = log, queue, ending
        self._metrics = metrics
        self._touched: dict[Running, None] = {}
        self._wake = asyncio.Event()

    def touch(self, running: Running) -> None:
        """This job has something to tell."""
        self._touched[running] = None
        self._wake.set()

    async def run(self) -> None:
        """Appends until cancelled."""
        async with asyncio.TaskGroup() as endings:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._flush(endings)

    async def _flush(self, endings: asyncio.TaskGroup) -> None:
        touched, self._touched = self._touched, {}
        batch = [
            (running, chunk)
            for running in touched
            if self._worker.holds(running) and (chunk := running.pending()) is not None
        ]
        for running, _ in batch:
            running.must_ask = False
        if not batch:
            return
        try:
            answers = await self._log.append([(running.job.id, chunk) for running, chunk in batch])
        except AxonError as error:
            _logger.warning("log.append_failed", error=str(error))
            await asyncio.sleep(_RETRY_S)
            for running, _ in batch:
                self.touch(running)
            return
        for (running, chunk), answer in zip(batch, answers, strict=True):
            if self._worker.holds(running):  # else a new attempt has taken its place meanwhile
                await self._heed(running, chunk, answer, endings)

    async def _heed(self, running: Running, chunk: Chunk, answer: Appended, endings: asyncio.TaskGroup) -> None:
        match answer.status:
            case AppendStatus.OK if chunk.terminal:
                running.sent, running.told = chunk.last, True
                endings.create_task(self._finish(running))
                if chunk.terminal == TurnState.COMPLETED:  # beside it: a quick reader's next turn is on its way already
                    endings.create_task(self._worker.note(running))
            case AppendStatus.OK:
                running.sent = chunk.last
            case AppendStatus.GAP:
                running.sent = answer.last
                self.touch(running)
            case AppendStatus.CANCEL:
                self._worker.cancel(running)
            case AppendStatus.ABSENT:
                self._metrics.cancelled.labels(cause="absent").inc()
                self._worker.cancel(running)
            case AppendStatus.MISSING:
                await self._restore(running)
            case AppendStatus.FENCED:
                self._metrics.fenced_writes.inc()
                self._worker.park(running)
            case AppendStatus.DONE:
                self._worker.park(running)  # looked at again, it is seen to have ended, and acked

    async def _restore(self, running: Running) -> None:
        """Tells it all again if it is still ours; tried again when that cannot be found out now."""
        try:
            ours = await self._worker.restore(running)
        except AxonError as error:
            _logger.warning("log.restore_failed", error=str(error))
            await asyncio.sleep(_RETRY_S)
            ours = True
        if ours:
            self.touch(running)
        else:
            self._worker.park(running)

    async def _finish(self, running: Running) -> None:
        """After the terminal append: journal, settle, ack. Tried until it succeeds: the turn was accepted."""
        while True:
            try:
                turn = await self._ending.finish(running.job, [running.whole()])
                await self._queue.ack(running.delivery)
                self._metrics.usage(turn.tenant, turn.usage, turn.ledger)
                break
            except AxonError as error:
                _logger.warning("turn.end_delayed", turn=running.job.id, error=str(error))
                if error.code == record.REFUSED:
                    self._worker.park(running)  # no retry would get it in: it must not hold a slot
                    return
                await asyncio.sleep(_RETRY_S)
        self._worker.forget(running)
