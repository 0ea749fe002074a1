"""Makes this worker the one owner of a job, under a new epoch, with every token that the log holds. Runs nothing."""

from dataclasses import dataclass

import structlog

from axon.domain.job import Job
from axon.domain.job_body import Beyond, read_job
from axon.domain.log.chunk import Chunk
from axon.domain.log.ownership import Claimed, ClaimStep, LogView, claim_step
from axon.domain.turn import Turn, TurnState
from axon.errors import DependencyDown
from axon.ownership.ending import Ending
from axon.ownership.liveness import Liveness
from axon.ports.live import Live
from axon.ports.queue import Delivery, Queue
from axon.ports.store import TurnStore
from axon.runtime.clock import Clock
from axon.telemetry.metrics import Metrics
from axon.text.tokenizer import Tokenizer
from axon.worker.job.running import Running
from axon.worker.lease import Lease

_NO_CHUNKS = 2**52
"""A seq beyond every stream's end, for a look at a stream without its tokens."""

_logger = structlog.get_logger("axon.worker")


@dataclass(frozen=True, slots=True)
class Busy:
    """The job cannot be claimed now: a worker whose lease holds owns it."""

    owner: str = ""
    """The incarnation that owns it."""


class Claims:
    """The claims of one worker incarnation."""

    def __init__(
        self,
        owner: str,
        lease: Lease,
        liveness: Liveness,
        tokenizer: Tokenizer,
        clock: Clock,
        *,
        queue: Queue,
        live: Live,
        turns: TurnStore,
        ending: Ending,
        reader_grace_s: float,
        checkpoint_s: float,
        metrics: Metrics,
        name: str = "",
        restarted_at: float = 0.0,
    ) -> None:
        """``owner`` is the incarnation, ``name`` the worker's name. ``restarted_at`` is the Unix time before which a
        job was accepted by an earlier process of this server, where the queue is in the process's memory."""
        self._owner, self._name = owner, name
        self._lease, self._liveness = lease, liveness
        self._queue, self._live, self._turns, self._ending = queue, live, turns, ending
        self._tokenizer, self._metrics = tokenizer, metrics
        self._reader_grace_s, self._checkpoint_s = reader_grace_s, checkpoint_s
        self._clock, self._restarted_at = clock, restarted_at
        self.ready_at = 0.0
        """Unix time at which this worker's engine had started."""

    async def job(self, delivery: Delivery) -> Job | Beyond | None:
        """Reads the job of a delivery; acks the delivery and returns None when no release could read its body, or when
        it needs a later release and has ended already."""
        job = read_job(delivery.body)
        if job is None:
            _logger.error("job.unreadable", lane=delivery.lane, next="dropped from the queue")
        elif not isinstance(job, Beyond) or not await self._is_stored_as_ended(job.job_id):
            return job
        await self._queue.ack(delivery)
        return None

    async def has_ended(self, job: Job) -> bool:
        """Whether somebody has ended the job, in the log or, where the log has lost it, in the store."""
        view = await self._live.log.read(job.id, after=_NO_CHUNKS)
        return view.ended if view is not None else await self._is_stored_as_ended(job.id)

    async def _is_stored_as_ended(self, job_id: str) -> bool:
        turn = await self._turns.get(job_id)
        return turn is not None and turn.state.terminal

    async def claim(self, job: Job, delivery: Delivery) -> Running | Busy | None:
        """Claims the job and rebuilds it; None when the job had ended, and its delivery was acked."""
        stored: Turn | None = None
        started = self._clock.monotonic()
        while True:
            view = await self._live.log.read(job.id, after=0)
            if view is None or (not view.ended and (view.epoch or self._may_be_written(job))):
                stored = await self._stored(job)
                if stored is not None and stored.state.terminal:
                    await self._queue.ack(delivery)  # the log has lost an end that readers find in the store
                    return None
            if view is None:
                await self.reopen(job, delivery)
                continue
            job = _body_of(view, delivery) or job
            step = claim_step(view, me=self._owner, owner_alive=await self._is_alive(view.owner, delivery))
            match step:
                case ClaimStep.FINISH:
                    await self._ending.finish(job, view.chunks)
                    await self._queue.ack(delivery)
                    return None
                case ClaimStep.PARK:
                    return Busy(view.owner)
            claimed = await self._live.log.claim(job.id, self._owner, over=view.epoch)
            if claimed is not None and (
                running := await self._rebuilt(job, delivery, claimed, stored, attempted=bool(view.epoch))
            ):
                if view.owner and view.owner != self._owner:
                    running.lost = "worker_lost", self._clock.monotonic()
                if job.created < self._restarted_at and not view.epoch:
                    running.tally.come_back(stored.ledger if stored else None)
                elif job.queued and not view.epoch:
                    running.tally.await_start(self.ready_at)
                self._begin(running, view, self._clock.monotonic() - started)
                if step is ClaimStep.CANCEL:
                    if view.absent:
                        self._metrics.turns.cancelled.labels(cause="absent").inc()
                    if not view.epoch and not running.tokens:
                        running.tally.leave_unbegun()
                    running.end(TurnState.CANCELLED)
                return running

    def _begin(self, running: Running, before: LogView, claim_s: float) -> None:
        """Notes the attempt in the job's ledger; ``before`` is the log's view before the claim."""
        running.tally.begin(
            running.epoch,
            me=self._owner,
            claim_s=claim_s,
            after=len(running.tokens),
            before=(before.epoch, before.owner),
            name=self._name,
        )

    async def _is_alive(self, owner: str, delivery: Delivery) -> bool:
        """Whether the owner's lease holds, and not both of its connections are gone: that to the queue, which has
        delivered the job again, and that to the live service."""
        if not await self._liveness.alive(owner):
            return False
        is_other = delivery.redelivered and owner != self._owner
        return not (is_other and await self._liveness.cut_off({owner}))

    async def restore(self, running: Running) -> bool:
        """Claims a job again that the log has forgotten, so that it is appended from seq 1; False when it is not ours.

        It is ours only while our lease holds by our own clock: after that another worker may have claimed it.
        """
        if not self._lease.holds:
            return False
        await self.reopen(running.job, running.delivery)
        view = await self._live.log.read(running.job.id, after=0)
        if view is None or view.ended or (view.owner and view.owner != self._owner):
            return False
        claimed = await self._live.log.claim(running.job.id, self._owner, over=view.epoch)
        if claimed is None:
            return False
        running.epoch, running.sent = claimed.epoch, view.last
        running.tally.claim_again(claimed.epoch)
        return True

    async def again(self, running: Running, *, crashes: int) -> Running | Busy | None:
        """Claims a job of ours once more, whose engine has died, with its new crash count; as ``claim``."""
        await self._live.log.release(running.job.id, running.epoch, crashes=crashes)
        return await self.claim(running.job, running.delivery)

    async def reopen(self, job: Job, delivery: Delivery) -> None:
        """Opens the job's stream in the log again, with the body of the delivery."""
        await self._live.log.open(job.id, delivery.body, reader_ttl_s=job.reader_ttl_s(self._reader_grace_s))

    def _may_be_written(self, job: Job) -> bool:
        """Whether the job is old enough for an earlier attempt, now forgotten by the log, to be in the journal."""
        return self._clock.now() - job.created > self._checkpoint_s

    async def _stored(self, job: Job) -> Turn | None:
        """Reads the turn from the store; None also while the store is away, which keeps no job from running."""
        try:
            return await self._turns.get(job.id)
        except DependencyDown:
            return None

    async def _rebuilt(
        self, job: Job, delivery: Delivery, claimed: Claimed, stored: Turn | None, *, attempted: bool
    ) -> Running | None:
        # The log is read again after the claim: the previous owner may have appended until then.
        view = await self._live.log.read(job.id, after=0)
        if view is None:
            return None
        running = Running(
            job=job,
            delivery=delivery,
            epoch=claimed.epoch,
            crashes=claimed.crashes,
            tokenizer=self._tokenizer,
            clock=self._clock,
        )
        running.replay(_longer(view.chunks, stored), attempted=attempted)
        running.sent = view.last
        return running


def _body_of(view: LogView, delivery: Delivery) -> Job | None:
    """The job as the log has it, where the delivery has another one: a repeated request may have opened it again after
    the log had lost it, and an id has one body."""
    found = read_job(view.body) if view.body != delivery.body else None
    return found if isinstance(found, Job) else None


def _longer(chunks: tuple[Chunk, ...], stored: Turn | None) -> tuple[Chunk, ...]:
    """The longer of two copies of the answer: the log's, unless it is a prefix of what the store has."""
    logged = tuple((token.choice, token.id) for chunk in chunks for token in chunk.tokens)
    if stored is None or len(stored.tokens) <= len(logged):
        return chunks
    same = logged == tuple((token.choice, token.id) for token in stored.tokens[: len(logged)])
    return (stored.chunk(),) if same else chunks
