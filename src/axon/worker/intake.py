"""Takes a delivery and makes this worker the job's one owner, with all that the log holds. Knows no engine."""

from dataclasses import dataclass

import structlog

from axon.dispatch.ending import Ending
from axon.dispatch.liveness import Liveness
from axon.domain.chunk import Chunk
from axon.domain.job import Job
from axon.domain.ownership import ClaimStep, claim_step
from axon.domain.turn import Turn, TurnState
from axon.domain.wire import decode
from axon.errors import DependencyDown
from axon.ports.live import Live
from axon.ports.queue import Delivery, Queue
from axon.ports.store import TurnStore
from axon.runtime.clock import Clock
from axon.text.tokenizer import Tokenizer
from axon.worker.job.running import Running

_logger = structlog.get_logger("axon.worker")


@dataclass(frozen=True, slots=True)
class Parked:
    """The job's owner is alive: the delivery waits here, neither acked nor given back."""

    delivery: Delivery
    owner: str = ""
    """Whose lease it waits for, where that is what it waits for."""


class Intake:
    """Claims for one worker incarnation."""

    def __init__(
        self,
        *,
        owner: str,
        queue: Queue,
        live: Live,
        turns: TurnStore,
        ending: Ending,
        tokenizer: Tokenizer,
        liveness: Liveness,
        reader_grace_s: float,
        checkpoint_s: float,
        clock: Clock,
    ) -> None:
        self._owner = owner
        self._liveness = liveness
        self._queue, self._live, self._turns, self._ending = queue, live, turns, ending
        self._tokenizer = tokenizer
        self._reader_grace_s, self._checkpoint_s = reader_grace_s, checkpoint_s
        self._clock = clock

    async def claim(self, job: Job, delivery: Delivery) -> Running | Parked | None:
        """The job, owned and rebuilt; None when nothing is left to run and the delivery was acked."""
        stored: Turn | None = None
        while True:
            view = await self._live.log.read(job.id, after=0)
            if view is None or (not view.ended and (view.epoch or self._may_be_written(job))):
                stored = await self._stored(job)
                if stored is not None and stored.state.terminal:
                    await self._queue.ack(
                        delivery
                    )  # the log has lost the end that the store knows; readers find it there
                    return None
            if view is None:
                await self.reopen(job, delivery)
                continue
            step = claim_step(view, me=self._owner, owner_alive=await self._liveness.alive(view.owner))
            match step:
                case ClaimStep.FINISH:
                    await self._ending.finish(job, view.chunks)
                    await self._queue.ack(delivery)
                    return None
                case ClaimStep.PARK:
                    return Parked(delivery, view.owner)
            epoch = await self._live.log.claim(job.id, self._owner, over=view.epoch)
            if epoch is not None and (running := await self._rebuilt(job, delivery, epoch, stored, bool(view.epoch))):
                if step is ClaimStep.CANCEL:
                    running.end(TurnState.CANCELLED)
                return running

    async def restore(self, running: Running) -> bool:
        """The log has forgotten a job we hold: claims it again, to be told from seq 1. False when it is not ours."""
        await self.reopen(running.job, running.delivery)
        view = await self._live.log.read(running.job.id, after=0)
        if view is None or view.ended or (view.owner and view.owner != self._owner):
            return False
        epoch = await self._live.log.claim(running.job.id, self._owner, over=view.epoch)
        if epoch is None:
            return False
        running.epoch, running.sent = epoch, view.last
        return True

    async def reopen(self, job: Job, delivery: Delivery) -> None:
        """Makes the job's stream anew from the delivery, as it came."""
        await self._live.log.open(job.id, delivery.body, reader_ttl_s=job.reader_ttl_s(self._reader_grace_s))

    async def job(self, delivery: Delivery) -> Job | None:
        """The job in a delivery; None when there is none to be read, and the delivery was acked."""
        try:
            return decode(Job, delivery.body)
        except ValueError as error:
            _logger.error("job.unreadable", lane=delivery.lane, error=str(error))
            await self._queue.ack(delivery)
            return None

    def _may_be_written(self, job: Job) -> bool:
        """Whether it is old enough for an attempt that nothing else remembers to have written what it said."""
        return self._clock.now() - job.created > self._checkpoint_s

    async def _stored(self, job: Job) -> Turn | None:
        """The turn as the store has it; a store that is away keeps nobody from running."""
        try:
            return await self._turns.get(job.id)
        except DependencyDown:
            return None

    async def _rebuilt(
        self, job: Job, delivery: Delivery, epoch: int, stored: Turn | None, attempted: bool
    ) -> Running | None:
        # Read after the claim: the old owner may have written until then.
        view = await self._live.log.read(job.id, after=0)
        if view is None:
            return None
        running = Running(job=job, delivery=delivery, epoch=epoch, tokenizer=self._tokenizer, clock=self._clock)
        running.replay(_longer(view.chunks, stored), attempted=attempted)
        running.sent = view.last
        return running


def _longer(chunks: tuple[Chunk, ...], stored: Turn | None) -> tuple[Chunk, ...]:
    """What was said: the log, unless it has lost what the store still has of the same answer."""
    logged = tuple((token.choice, token.id) for chunk in chunks for token in chunk.tokens)
    if stored is None or len(stored.tokens) <= len(logged):
        return chunks
    same = logged == tuple((token.choice, token.id) for token in stored.tokens[: len(logged)])
    return (stored.chunk(),) if same else chunks
