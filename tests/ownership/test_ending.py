"""The end of a turn that is to be kept nowhere: the journal gets the bill and no word."""

from collections.abc import Sequence

from axon.domain import wire
from axon.domain.content.item import Item
from axon.domain.job import Job
from axon.domain.reply import ResponseReply
from axon.domain.turn import Turn
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
