"""Turns for their traces: by their own id or their request's, while they run and after their end."""

from dataclasses import replace

from axon.domain.billing.ledger import Ledger
from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.times import Attempt, Times
from axon.domain.turn import TurnState
from axon.runtime.clock import SystemClock
from axon.sessions.traced_turns import TracedTurns
from tests.contracts.builders import claim_epoch
from tests.sessions.world import Kept

TIMES = Times(1.0, 0.5, "req_1", (Attempt(7, "w1", 3.0),))


def traced_of(kept: Kept) -> TracedTurns:
    return TracedTurns(kept.lookup, kept.live.log, kept.store.turns, SystemClock())


async def test_a_turn_that_runs_has_the_ledger_of_its_log(kept: Kept) -> None:
    job = await kept.open("hello")
    unclaimed = await traced_of(kept).find(job.id)
    assert unclaimed is not None
    assert (unclaimed.state, unclaimed.ledger) == (TurnState.OPENED, None)
    epoch = await claim_epoch(kept.live.log, job.id, "w1", over=0)
    ledger = Ledger(attempts=1, queue_s=2.0, times=TIMES)
    await kept.live.log.append([(job.id, Chunk(first=1, epoch=epoch, tokens=(Token(0, 1, "a"),), ledger=ledger))])
    running = await traced_of(kept).find(job.id)
    assert running is not None
    assert running.state is TurnState.OPENED
    assert running.ledger == replace(ledger, emitted=1)
    assert running.ended_at is not None


async def test_a_request_names_its_turn(kept: Kept) -> None:
    job = await kept.open("hello")
    epoch = await claim_epoch(kept.live.log, job.id, "w1", over=0)
    ends, ledger = (End(0, "stop"),), Ledger(attempts=1, times=TIMES)
    await kept.end(job, Chunk(first=1, epoch=epoch, ends=ends, terminal="completed", ledger=ledger))
    found = await traced_of(kept).find("req_1")
    assert found is not None
    assert found.id == job.id
    assert await traced_of(kept).find("req_2") is None
    assert await traced_of(kept).find("") is None
    slow = await traced_of(kept).slowest(since_s=3600, most=5)
    assert [turn.id for turn in slow.turns] == [job.id]


async def test_a_turn_that_is_read_from_the_log_ended_when_its_ledger_says(kept: Kept) -> None:
    job = await kept.open("hello")
    epoch = await claim_epoch(kept.live.log, job.id, "w1", over=0)
    ledger = Ledger(attempts=1, queue_s=1.0, prefill_s=0.5, decode_s=2.0, times=TIMES)
    last = Chunk(first=1, epoch=epoch, ends=(End(0, "stop"),), terminal="completed", ledger=ledger)
    await kept.live.log.append([(job.id, last)])
    found = await traced_of(kept).find(job.id)
    assert found is not None
    assert (found.state, found.ended_at) == (TurnState.COMPLETED, job.created + 3.5)
