"""The end of a turn that is to be kept nowhere, and of one whose client was told that it was not accepted."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from axon.domain import wire
from axon.domain.billing.cost import Rates
from axon.domain.billing.ledger import Ledger
from axon.domain.billing.usage import Usage
from axon.domain.content.item import Item
from axon.domain.job import Job
from axon.domain.reply import ResponseReply
from axon.domain.turn import Turn, TurnState
from axon.ownership.ending import Ending
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_chunk, make_job

END = make_chunk(1, 2, terminal="completed")
SECRET = Item(id="msg_1", role="user", texts=("a canary",))


class Journal:
    def __init__(self) -> None:
        self.records: list[Turn] = []

    async def append(self, turns: Sequence[Turn]) -> None:
        self.records += turns

    async def barrier(self, *, timeout_s: float) -> None:
        return None


async def finish(job: Job, clock: FakeClock) -> tuple[Turn, Turn, list[str]]:
    """What the caller was told, what the journal got, and whose stream was forgotten."""
    journal, done = Journal(), []

    async def settle(job: Job, num_tokens: int) -> None:
        done.append(f"settled {num_tokens}")

    async def forget(job: Job) -> None:
        assert journal.records, "the end must be known before the stream goes"
        done.append("forgotten")

    turn = await Ending(journal, settle, clock, forget).finish(job, [END])
    return turn, journal.records[0], done


async def test_a_turn_that_is_not_stored_leaves_its_usage_alone(clock: FakeClock) -> None:
    job = make_job(forget=True, items=(SECRET,), reply=ResponseReply(instructions="a canary"))
    turn, record, done = await finish(job, clock)
    assert done == ["settled 5", "forgotten"]
    assert record.usage == turn.usage
    assert (record.state, record.tenant, record.id) == (turn.state, turn.tenant, turn.id)
    assert record.job.purged
    assert b"canary" not in wire.encode(record)
    assert record.tokens == ()
    assert turn.tokens != ()


async def test_any_other_turn_is_kept_whole(clock: FakeClock) -> None:
    turn, record, done = await finish(make_job(items=(SECRET,)), clock)
    assert record == turn
    assert done == ["settled 5"]


async def refused(job_id: str) -> bool:
    return True


async def settled(job: Job, num_tokens: int) -> None:
    assert not num_tokens


@pytest.mark.parametrize("state", ["cancelled", "expired", "failed"])
async def test_a_turn_without_an_answer_whose_client_was_refused_costs_nothing(clock: FakeClock, state: str) -> None:
    job, journal = make_job(rates=Rates(prompt=1_000_000, output=1_000_000, currency="EUR")), Journal()
    ledger = Ledger(queued=3, prefilled=3, emitted=2, wasted=1, attempts=1)
    chunks = [make_chunk(1, 2), replace(make_chunk(3, 0, terminal=state), ledger=ledger)]
    turn = await Ending(journal, settled, clock, is_refused=refused).finish(job, chunks)
    assert journal.records == [turn]
    assert (turn.state, turn.usage, turn.tokens, turn.ends) == (TurnState(state), Usage(), (), ())
    assert turn.ledger == replace(ledger, queued=0, emitted=0, wasted=3)
    assert turn.ledger.computed == ledger.computed
    assert turn.cost is not None
    assert turn.cost.amount.total_nanos == 0


async def test_a_completed_turn_costs_what_it_is_because_a_repeated_request_is_given_it(clock: FakeClock) -> None:
    done: list[int] = []

    async def settle(job: Job, num_tokens: int) -> None:
        done.append(num_tokens)

    turn = await Ending(Journal(), settle, clock, is_refused=refused).finish(make_job(), [END])
    assert done == [turn.usage.total_tokens] == [5]
