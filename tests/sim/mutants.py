"""The rules of the protocol, broken one at a time. The simulation must notice each."""

import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from axon.adapters.live.memory import accounts
from axon.adapters.live.memory.log import MemoryTokenLog
from axon.adapters.live.memory.pins import MemoryPins
from axon.control.gone import GoneVersions
from axon.control.sweeper import Sweeper
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.idempotency import First, Idempotency
from axon.domain import stream, turn
from axon.domain.job import Job
from axon.domain.log import append, ownership
from axon.domain.log.append import AppendStatus
from axon.domain.log.chunk import Chunk
from axon.domain.log.ownership import ClaimStep, LogView
from axon.domain.session.pin import Known, LastPin, Pin
from axon.domain.tenants.account import Settlement
from axon.domain.turn import Turn, TurnState
from axon.errors import AxonError
from axon.gateway.turn.follow import Follower
from axon.gateway.turn.reader import PollTimer, Reader
from axon.ownership.liveness import Liveness
from axon.ports.live import Appended
from axon.ports.queue import Delivery
from axon.sessions.history import Histories
from axon.sessions.lookup import Lookup
from axon.sessions.pins import Resolved, SessionPins
from axon.worker import claims
from axon.worker.emit import Emitter
from axon.worker.intake import Intake
from axon.worker.job.running import Running
from axon.worker.peers.passing import Passing

Mutant = Callable[[], contextlib.AbstractContextManager[Any]]

_judge = append.judge
_answered = Emitter._answered
_finish = Emitter._finish


def append_ignores_the_epoch() -> contextlib.AbstractContextManager[Any]:
    def judge(chunk: Chunk, *, epoch: int, **stream: Any) -> AppendStatus:
        return _judge(chunk, epoch=chunk.epoch, **stream)

    return patch.object(append, "judge", judge)


def append_allows_a_gap() -> contextlib.AbstractContextManager[Any]:
    def judge(chunk: Chunk, *, last: int, **stream: Any) -> AppendStatus:
        return _judge(chunk, last=chunk.first - 1, **stream)

    return patch.object(append, "judge", judge)


def claim_without_a_lease_check() -> contextlib.AbstractContextManager[Any]:
    def claim_step(view: LogView, *, me: str, owner_alive: bool) -> ClaimStep:
        return ownership.claim_step(view, me=me, owner_alive=False)

    return patch.object(claims, "claim_step", claim_step)


def redelivery_taken_for_a_death() -> contextlib.AbstractContextManager[Any]:
    """A delivery that comes again is claimed without a look at its owner's lifeline."""

    async def cut_off(self: Liveness, owners: Collection[str]) -> frozenset[str]:
        return frozenset(owners)

    return patch.object(Liveness, "cut_off", cut_off)


def missing_treated_as_ok() -> contextlib.AbstractContextManager[Any]:
    async def answered(self: Emitter, running: Running, chunk: Chunk, answer: Appended, endings: Any) -> None:
        if answer.status is AppendStatus.MISSING:
            answer = Appended(AppendStatus.OK, chunk.last)
        await _answered(self, running, chunk, answer, endings)

    return patch.object(Emitter, "_answered", answered)


def epoch_restarting_after_a_flush() -> contextlib.AbstractContextManager[Any]:
    return patch("axon.adapters.live.memory.log.next_epoch", lambda stored, now: stored + 1)


def ack_before_the_journal() -> contextlib.AbstractContextManager[Any]:
    async def finish(self: Emitter, running: Running) -> None:
        with contextlib.suppress(AxonError):
            await self._queue.ack(running.delivery)
        await _finish(self, running)

    return patch.object(Emitter, "_finish", finish)


def do_nothing_upsert() -> contextlib.AbstractContextManager[Any]:
    return patch.object(turn, "supersedes", lambda new, stored: stored is None)


def resume_off_by_one() -> contextlib.AbstractContextManager[Any]:
    def arrive(self: stream.Cursor) -> None:
        self.seq += self.seq > 0
        self.start = self.seq

    return patch.object(stream.Cursor, "__post_init__", arrive)


def settle_twice() -> contextlib.AbstractContextManager[Any]:
    settle = accounts._Account.settle

    def again(self: accounts._Account, end: Settlement, now: float) -> None:
        self.jobs.setdefault(end.job_id, accounts._Job(reserved=end.used))
        settle(self, end, now)

    return patch.object(accounts._Account, "settle", again)


def beat_after_the_settling() -> contextlib.AbstractContextManager[Any]:
    """A worker's word of a job that has been settled meanwhile counts."""
    beat = accounts._Account.beat

    def late(self: accounts._Account, beats: Any, *rest: Any) -> Any:
        return beat(self, [replace(each, again=True) for each in beats], *rest)

    return patch.object(accounts._Account, "beat", late)


def ticket_that_never_lapses() -> contextlib.AbstractContextManager[Any]:
    return patch.object(accounts._Account, "_lapse", lambda self, job_id, job, bounds: None)


def park_that_forgets() -> contextlib.AbstractContextManager[Any]:
    """A delivery whose job somebody else runs is dropped instead of kept."""
    start = Intake._claim

    async def claim(self: Intake, delivery: Delivery) -> None:
        await start(self, delivery)
        self._parked.drop(delivery)

    return patch.object(Intake, "_claim", claim)


def hand_over_that_acks() -> contextlib.AbstractContextManager[Any]:
    """A job that another worker is to go on with is taken off the queue."""

    async def put_back(self: Passing, running: Running) -> None:
        self._hands.forget(running)
        await self._queue.ack(running.delivery)

    return patch.object(Passing, "_put_back", put_back)


def release_that_forgets_the_crash_count() -> contextlib.AbstractContextManager[Any]:
    release = MemoryTokenLog.release

    async def forgetful(self: MemoryTokenLog, job_id: str, epoch: int, *, crashes: int) -> None:
        await release(self, job_id, epoch, crashes=0)

    return patch.object(MemoryTokenLog, "release", forgetful)


def cancel_after_done() -> contextlib.AbstractContextManager[Any]:
    async def end(self: Sweeper, turn: Turn, view: LogView, state: TurnState, **_: str) -> None:
        """Writes the end it wants without asking whether there is one."""
        last = Chunk(first=view.last + 1, epoch=view.epoch, terminal=state)
        await self._live.log.append([(turn.id, last)])
        await self._ending.finish(turn.job, [*view.chunks, last])

    return patch.object(Sweeper, "_end", end)


def tokens_after_a_stop() -> contextlib.AbstractContextManager[Any]:
    """An end takes tokens along that came after the stop."""

    def judge(chunk: Chunk, *, cancelled: bool, **stream: Any) -> AppendStatus:
        return _judge(chunk, cancelled=cancelled and not chunk.terminal, **stream)

    return patch.object(append, "judge", judge)


def barrier_skipped() -> contextlib.AbstractContextManager[Any]:
    async def stored(self: Lookup, turn_id: str) -> Turn | None:
        return await self._turns.get(turn_id)

    return patch.object(Lookup, "stored", stored)


def history_without_a_barrier() -> contextlib.AbstractContextManager[Any]:
    async def behind_barrier(self: Lookup) -> None:
        return None

    return patch.object(Lookup, "behind_barrier", behind_barrier)


@contextlib.contextmanager
def store_asked_after_silence_alone() -> Iterator[None]:
    """A reader hears of an end that the log has lost only if it stays through a silence of seconds."""
    follow, is_due = Follower.follow, PollTimer.store_is_due

    def follow_log(self: Follower, job_id: str, *, after: int, reader: Reader) -> Any:
        return follow(self, job_id, after=after, reader=replace(reader, found=None))

    def after_silence(self: PollTimer, now: float, *, is_beyond: bool) -> bool:
        return is_due(self, now, is_beyond=False)

    with patch.object(Follower, "follow", follow_log), patch.object(PollTimer, "store_is_due", after_silence):
        yield


def turn_remembered_too_late() -> contextlib.AbstractContextManager[Any]:
    """A conversation's newest turn is noted after its acceptance, when the gateway may be dead."""
    remember = Histories.remember

    async def later(self: Histories, tenant: str, history: Any, *, head: str = "") -> None:
        known = await self._recall(history.session)
        if known is None or not head:
            await remember(self, tenant, history, head="")

    return patch.object(Histories, "remember", later)


def twin_that_publishes_its_own_body() -> contextlib.AbstractContextManager[Any]:
    """A job that was opened under the same id before is accepted with another body."""

    async def first(self: Dispatch, job: Job, body: bytes, creation: Any) -> tuple[Job, bytes]:
        creation.made = await self._open(job, body)
        return job, body

    return patch.object(Dispatch, "_first", first)


def pin_that_overwrites() -> contextlib.AbstractContextManager[Any]:
    async def pin(self: MemoryPins, key: str, wanted: Pin, *, ttl_s: float) -> Pin:
        self._pins.put(key, wanted, ttl_s)
        return wanted

    return patch.object(MemoryPins, "pin", pin)


def pin_read_from_memory_after_a_move() -> contextlib.AbstractContextManager[Any]:
    """A gateway keeps the pins that it has seen."""
    resolve = SessionPins.resolve

    async def remembered(self: SessionPins, key: str, **how: Any) -> Resolved:
        kept = vars(self).setdefault("kept", {})
        if key not in kept:
            kept[key] = await resolve(self, key, **how)
        return kept[key] if key else await resolve(self, key, **how)

    return patch.object(SessionPins, "resolve", remembered)


def missing_pin_chosen_anew() -> contextlib.AbstractContextManager[Any]:
    """A session that ``live`` does not know begins where the percentage says."""

    async def stored(self: SessionPins, key: str, session: str) -> None:
        return None

    return patch.object(SessionPins, "_stored", stored)


def pin_read_without_the_barrier() -> contextlib.AbstractContextManager[Any]:
    async def stored(self: SessionPins, key: str, session: str) -> LastPin | None:
        return await self._pinned.last_pin(key, session=session)

    return patch.object(SessionPins, "_stored", stored)


def percentage_applied_to_pinned_sessions() -> contextlib.AbstractContextManager[Any]:
    def next_pin(pin: Pin, known: Known, choose: Callable[[], str]) -> Pin:
        return Pin(pin.generation, choose())

    return patch("axon.sessions.pins.next_pin", next_pin)


def move_that_is_not_told() -> contextlib.AbstractContextManager[Any]:
    """A move is told by the gateway that makes it alone, which may die before its turn is accepted."""

    def moved_to(pin: Pin, version: str, reason: str) -> Pin:
        return Pin(pin.generation + 1, version)

    return patch("axon.domain.session.pin.moved_to", moved_to)


@contextlib.contextmanager
def repeated_request_rendered_anew() -> Iterator[None]:
    """A request that is sent again gets a new job, on the version that its session is on now."""
    resolve = Idempotency.resolve

    async def again(self: Idempotency, **asked: Any) -> Any:
        found = await resolve(self, **asked)
        return found.job.id if isinstance(found, First) and not found.claimed else found

    with patch.object(Idempotency, "resolve", again), twin_that_publishes_its_own_body():
        yield


def foreign_job_acked_before_it_is_published() -> contextlib.AbstractContextManager[Any]:
    forward = Passing.forward

    async def acked(self: Passing, job: Job, delivery: Delivery, lane: str) -> None:
        await self._queue.ack(delivery)
        await forward(self, job, delivery, lane)

    return patch.object(Passing, "forward", acked)


def foreign_job_given_back_for_ever() -> contextlib.AbstractContextManager[Any]:
    async def back(self: Passing, job: Job, delivery: Delivery, lane: str) -> None:
        await self.give_back(job, delivery)

    return patch.object(Passing, "forward", back)


def sweep_that_stops_at_the_first_page() -> contextlib.AbstractContextManager[Any]:
    pages = Sweeper._pages

    async def first(self: Sweeper) -> AsyncIterator[Sequence[Turn]]:
        async for turns in pages(self):
            yield turns
            return

    return patch.object(Sweeper, "_pages", first)


def cold_job_ended_as_version_gone() -> contextlib.AbstractContextManager[Any]:
    async def is_gone(self: GoneVersions, job: Job) -> bool:
        presences = await self._presences.all(job.deployment)
        return job.version not in {presence.deployment.version for presence in presences}

    return patch.object(GoneVersions, "is_gone", is_gone)


MUTANTS: dict[str, Mutant] = {
    mutant.__name__: mutant
    for mutant in (
        append_ignores_the_epoch,
        append_allows_a_gap,
        claim_without_a_lease_check,
        redelivery_taken_for_a_death,
        missing_treated_as_ok,
        epoch_restarting_after_a_flush,
        ack_before_the_journal,
        do_nothing_upsert,
        resume_off_by_one,
        settle_twice,
        beat_after_the_settling,
        ticket_that_never_lapses,
        park_that_forgets,
        hand_over_that_acks,
        release_that_forgets_the_crash_count,
        cancel_after_done,
        tokens_after_a_stop,
        barrier_skipped,
        history_without_a_barrier,
        store_asked_after_silence_alone,
        turn_remembered_too_late,
        twin_that_publishes_its_own_body,
        pin_that_overwrites,
        pin_read_from_memory_after_a_move,
        missing_pin_chosen_anew,
        pin_read_without_the_barrier,
        percentage_applied_to_pinned_sessions,
        move_that_is_not_told,
        repeated_request_rendered_anew,
        foreign_job_acked_before_it_is_published,
        foreign_job_given_back_for_ever,
        sweep_that_stops_at_the_first_page,
        cold_job_ended_as_version_gone,
    )
}
