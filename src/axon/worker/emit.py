"""Out to the log: one compare-and-set append per job and step, and what each answer means. Knows no engine."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from axon.domain import record
from axon.domain.log.chunk import Chunk
from axon.domain.turn import Turn, TurnState
from axon.errors import AxonError
from axon.ownership.ending import Ending
from axon.ports.live import Appended, AppendStatus, TokenLog
from axon.ports.queue import Queue
from axon.telemetry.logs import about
from axon.telemetry.metrics import Metrics
from axon.worker.job.hands import Hands
from axon.worker.job.running import Running
from axon.worker.peers.residency import Residency
from axon.worker.queue.parked import Parked

_RETRY_S = 0.2
_FEW = 2
"""With at most this many jobs in hand, each step's tokens are appended at once."""

_logger = structlog.get_logger("axon.worker")


class Emitter:
    """Appends what the jobs in hand have to say. While one append is in flight, a job's next tokens gather.

    Beside several jobs the tokens in the middle of streams go out in rounds, at most one in ``gather_s``: an append, a
    frame and a wake-up for each token of each stream take processor time from an engine on the same cores. A stream's
    first token, its end, and whatever waits for the log's answer never wait for a round.
    """

    def __init__(
        self,
        hands: Hands,
        parked: Parked,
        residency: Residency | None,
        restore: Callable[[Running], Awaitable[bool]],
        *,
        log: TokenLog,
        queue: Queue,
        ending: Ending,
        metrics: Metrics,
        gather_s: float,
        ended: Callable[[Turn], None] = lambda turn: None,
    ) -> None:
        """``restore`` claims a job again that the log has forgotten; it returns False when the job is not ours.
        ``ended`` is told each turn that has ended here."""
        self._hands, self._parked = hands, parked
        self._log, self._queue, self._ending = log, queue, ending
        self._restore_claim, self._residency = restore, residency
        self._metrics, self._ended = metrics, ended
        self._gather_s, self._round_at = gather_s, float("-inf")
        self._touched: dict[Running, None] = {}
        self._gathering: dict[Running, None] = {}
        """Jobs whose tokens go out in the next round."""
        self._timer: asyncio.TimerHandle | None = None
        """Begins that round."""
        self._wake = asyncio.Event()
        hands.on_news.append(self.touch)

    def touch(self, running: Running) -> None:
        """The job has something to append."""
        if (wait_s := self._wait_s(running)) > 0:
            self._gathering[running] = None
            self._timer = self._timer or asyncio.get_running_loop().call_later(wait_s, self._begin_round)
        else:
            self._touched[running] = None
            self._wake.set()

    def _wait_s(self, running: Running) -> float:
        """Seconds until this job's tokens may go out."""
        if not self._gather_s or not running.is_midstream or len(self._hands.running) <= _FEW:
            return 0.0
        return self._round_at + self._gather_s - asyncio.get_running_loop().time()

    def _begin_round(self) -> None:
        self._timer = None
        self._touched |= self._gathering
        self._gathering.clear()
        self._wake.set()

    async def run(self) -> None:
        """Appends until cancelled."""
        try:
            async with asyncio.TaskGroup() as endings:
                while True:
                    await self._wake.wait()
                    self._wake.clear()
                    await self._flush(endings)
        finally:
            if self._timer is not None:
                self._timer.cancel()

    async def _flush(self, endings: asyncio.TaskGroup) -> None:
        touched, self._touched = self._touched, {}
        if any(running.is_midstream for running in touched):
            self._round_at = asyncio.get_running_loop().time()
        batch = [
            (running, chunk)
            for running in touched
            if self._hands.holds(running) and (chunk := running.pending()) is not None
        ]
        for running, _ in batch:
            running.must_ask = False
        if not batch:
            return
        try:
            answers = await self._log.append([(running.job.id, chunk) for running, chunk in batch])
        except AxonError as error:
            _logger.warning("log.append_failed", turns=len(batch), error=str(error), retry_s=_RETRY_S)
            await asyncio.sleep(_RETRY_S)
            for running, _ in batch:
                self.touch(running)
            return
        for (running, chunk), answer in zip(batch, answers, strict=True):
            if self._hands.holds(running):  # else a new attempt has taken its place meanwhile
                await self._answered(running, chunk, answer, endings)

    async def _answered(self, running: Running, chunk: Chunk, answer: Appended, endings: asyncio.TaskGroup) -> None:
        match answer.status:
            case AppendStatus.OK if chunk.terminal:
                running.sent, running.end_logged = chunk.last, True
                endings.create_task(self._finish(running))
                if chunk.terminal == TurnState.COMPLETED and self._residency is not None:
                    # Beside the end, not after it: a quick reader's next turn is on its way already.
                    endings.create_task(self._residency.record(running))
            case AppendStatus.OK:
                running.sent, running.answered_at = chunk.last, running.clock.monotonic()
            case AppendStatus.GAP:
                running.sent = answer.last
                self.touch(running)
            case AppendStatus.CANCEL:
                self._hands.cancel(running)
            case AppendStatus.ABSENT:
                self._metrics.turns.cancelled.labels(cause="absent").inc()
                self._hands.cancel(running)
            case AppendStatus.MISSING:
                await self._restore(running)
            case AppendStatus.FENCED:
                self._metrics.streams.fenced_writes.inc()
                self._park(running)
            case AppendStatus.DONE:
                self._park(running)  # the next look at its delivery finds that the job has ended, and acks it

    async def _restore(self, running: Running) -> None:
        """Appends the whole stream again if the job is still ours; retried while that cannot be found out."""
        try:
            ours = await self._restore_claim(running)
        except AxonError as error:
            _logger.warning(
                "log.restore_failed", **about(running.job, running.attempt), error=str(error), retry_s=_RETRY_S
            )
            await asyncio.sleep(_RETRY_S)
            ours = True
        if ours:
            self.touch(running)
        else:
            self._park(running)

    async def _finish(self, running: Running) -> None:
        """After the terminal append: journal, settle, ack. Retried until it succeeds, because the turn was accepted."""
        while True:
            try:
                turn = await self._ending.finish(running.job, [running.whole()])
                await self._queue.ack(running.delivery)
                self._ended(turn)
                break
            except AxonError as error:
                _logger.warning(
                    "turn.end_delayed", **about(running.job, running.attempt), error=str(error), retry_s=_RETRY_S
                )
                if error.code == record.REFUSED:
                    self._park(running)  # no retry would get it in, and it must not hold a slot
                    return
                await asyncio.sleep(_RETRY_S)
        self._hands.forget(running)

    def _park(self, running: Running) -> None:
        """Gives the job up and keeps its delivery until it is clear who owns the job."""
        self._hands.forget(running)
        self._parked.add(running.delivery)
