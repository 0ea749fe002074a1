"""What a start does with the turns that the last one left unfinished."""

from collections.abc import Sequence

from axon.adapters.live.memory import open_memory_live
from axon.adapters.queue.memory import MemoryBroker
from axon.control.config import ControlConfig
from axon.control.sweeper import Sweeper
from axon.dispatch.config import DispatchConfig
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.ending import Ending
from axon.dispatch.liveness import Liveness
from axon.domain.job import Job
from axon.domain.turn import Turn, TurnState, opened
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_job


class Turns:
    """Turns left by the last start, and the ends they were given."""

    def __init__(self, unfinished: Sequence[Turn]) -> None:
        self.left = list(unfinished)
        self.ended: list[Turn] = []

    async def apply(self, turns: Sequence[Turn]) -> None:
        raise AssertionError("only the journal writes")

    async def get(self, turn_id: str) -> Turn | None:
        return None

    async def unfinished(self, *, limit: int) -> Sequence[Turn]:
        return self.left[:limit]

    async def purge(self, *, ended_before: float) -> int:
        return 0

    async def append(self, turns: Sequence[Turn]) -> None:
        self.ended += turns

    async def barrier(self, *, timeout_s: float) -> None: ...


async def recovered(job: Job, broker: MemoryBroker) -> Turns:
    """A start that finds this job's turn unfinished."""
    clock, turns = FakeClock(), Turns([opened(job)])
    live = open_memory_live(clock, retention_s=60)
    queue = broker.connect()
    await queue.open()

    async def settle(job: Job, used: int) -> None: ...

    async def readmit(job: Job) -> None: ...

    sweeper = Sweeper(
        turns=turns,
        live=live,
        queue=queue,
        dispatch=Dispatch(
            log=live.log, journal=turns, queue=queue, wakeups=live.wakeups, config=DispatchConfig(), reader_grace_s=30
        ),
        ending=Ending(turns, settle, clock),
        liveness=Liveness(live.leases, clock, lease_s=1.5),
        readmit=readmit,
        config=ControlConfig(),
        retention_s=60,
        clock=clock,
    )
    assert await sweeper.recover() == 1
    return turns


async def test_an_unfinished_turn_is_enqueued_again() -> None:
    job, broker = make_job(), MemoryBroker()
    broker.declare([job.lane])
    turns = await recovered(job, broker)
    assert (broker.depth(job.lane), turns.ended) == (1, [])


async def test_a_turn_whose_deployment_is_gone_is_ended_instead_of_stopping_every_start() -> None:
    turns = await recovered(make_job(), MemoryBroker())
    assert [(turn.state, turn.code) for turn in turns.ended] == [(TurnState.FAILED, "deployment_gone")]


async def test_a_turn_that_cannot_be_enqueued_just_now_is_not_ended() -> None:
    job, broker = make_job(), MemoryBroker(max_waiting=0)
    broker.declare([job.lane])
    turns = await recovered(job, broker)
    assert turns.ended == []
