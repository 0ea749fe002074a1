"""What a start does with the turns that the last one left unfinished, and who sweeps at all."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from axon.adapters.live.memory.leases import MemoryLeases
from axon.adapters.live.memory.live import open_memory_live
from axon.adapters.live.memory.log import MemoryTokenLog
from axon.adapters.live.memory.wakeups import MemoryWakeups
from axon.adapters.queue.memory import MemoryBroker
from axon.control.config import ControlConfig
from axon.control.gone import GoneVersions
from axon.control.sweeper import Sweeper
from axon.dispatch.config import DispatchConfig
from axon.dispatch.dispatch import Dispatch, work_channel
from axon.dispatch.hint import decode_hint
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.log.ownership import LogView
from axon.domain.turn import Turn, TurnState, opened
from axon.domain.wire import encode
from axon.errors import DependencyDown
from axon.ownership.ending import Ending
from axon.ownership.liveness import Liveness
from axon.ports.live import Live, lifeline
from axon.runtime.clock import FakeClock
from tests.contracts.builders import claim_epoch, make_job


class Turns:
    """Turns left by the last start, and the ends they were given."""

    def __init__(self, unfinished: Sequence[Turn]) -> None:
        self.left = list(unfinished)
        self.ended: list[Turn] = []
        self.num_sweeps = self.num_purges = 0
        self.swept = asyncio.Event()

    async def apply(self, turns: Sequence[Turn]) -> None:
        raise AssertionError("only the journal writes")

    async def get(self, turn_id: str) -> Turn | None:
        return None

    async def unfinished(self, *, limit: int, after: tuple[float, str] | None = None) -> Sequence[Turn]:
        self.num_sweeps += after is None
        self.swept.set()
        left = sorted(self.left, key=lambda turn: (turn.opened_at, turn.id))
        return [turn for turn in left if after is None or (turn.opened_at, turn.id) > after][:limit]

    async def purge(self, *, ended_before: float) -> int:
        self.num_purges += 1
        return 0

    async def append(self, turns: Sequence[Turn]) -> None:
        self.ended += turns

    async def barrier(self, *, timeout_s: float) -> None: ...


async def make_sweeper(
    turns: Turns,
    broker: MemoryBroker,
    leads: Callable[[], bool] = lambda: True,
    renewed: list[str] | None = None,
    clock: FakeClock | None = None,
    live: Live | None = None,
    is_ours: Callable[[str], bool] = lambda deployment: False,
    gone: GoneVersions | None = None,
) -> Sweeper:
    clock = clock or FakeClock()
    live = live or open_memory_live(clock, retention_s=60)
    queue = broker.connect()
    await queue.open()

    async def settle(job: Job, used: int) -> None: ...

    async def readmit(job: Job) -> None: ...

    async def renew(jobs: Sequence[Job]) -> None:
        if renewed is not None:
            renewed.extend(job.id for job in jobs)

    return Sweeper(
        turns=turns,
        live=live,
        queue=queue,
        dispatch=Dispatch(
            log=live.log,
            journal=turns,
            queue=queue,
            wakeups=live.wakeups,
            config=DispatchConfig(),
            reader_grace_s=30,
            is_ours=is_ours,
        ),
        ending=Ending(turns, settle, clock),
        liveness=Liveness(live.leases, clock, lease_s=1.5, wakeups=live.wakeups),
        readmit=readmit,
        config=ControlConfig(sweep_s=0.01),
        retention_s=60,
        clock=clock,
        leads=leads,
        renew=renew,
        renew_s=15.0,
        gone=gone,
    )


async def recovered(job: Job, broker: MemoryBroker) -> Turns:
    """A start that finds this job's turn unfinished."""
    turns = Turns([opened(job)])
    sweeper = await make_sweeper(turns, broker)
    assert await sweeper.recover() == 1
    return turns


async def test_who_stands_by_sweeps_nothing_until_it_leads() -> None:
    leads, asked, looks = False, asyncio.Event(), 0
    turns = Turns([])

    def leading() -> bool:
        nonlocal looks
        looks += 1
        asked.set()
        return leads

    sweeper = await make_sweeper(turns, MemoryBroker(), leading)
    running = asyncio.create_task(sweeper.run())
    try:
        async with asyncio.timeout(60.0):
            while looks < 3:
                asked.clear()
                await asked.wait()
            assert turns.num_sweeps == 0
            leads = True
            await turns.swept.wait()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_tickets_of_all_turns_that_have_not_ended_are_renewed_now_and_then() -> None:
    clock, renewed = FakeClock(), list[str]()
    jobs = [make_job(name, deadline=clock.now() + 600) for name in ("turn_1", "turn_2")]
    turns, broker = Turns([opened(job) for job in jobs]), MemoryBroker()
    broker.declare([jobs[0].lane])
    sweeper = await make_sweeper(turns, broker, renewed=renewed, clock=clock)
    await sweeper.sweep()
    await sweeper.sweep()
    assert renewed == ["turn_1", "turn_2"]
    clock.advance(15.0)
    del turns.left[0]
    await sweeper.sweep()
    assert renewed == ["turn_1", "turn_2", "turn_2"]


async def test_the_ticket_of_a_turn_that_has_ended_is_not_renewed_though_the_store_has_not_heard_of_it() -> None:
    clock, renewed = FakeClock(), list[str]()
    job, broker = make_job("turn_1", deadline=clock.now() + 600), MemoryBroker()
    broker.declare([job.lane])
    live = open_memory_live(clock, retention_s=60)
    await live.log.open(job.id, encode(job), reader_ttl_s=None)
    epoch = await claim_epoch(live.log, job.id, "w1", over=0)
    await live.log.append([(job.id, Chunk(first=1, epoch=epoch, terminal=TurnState.COMPLETED))])
    sweeper = await make_sweeper(Turns([opened(job)]), broker, renewed=renewed, clock=clock, live=live)
    await sweeper.sweep()
    assert renewed == []


async def test_an_unfinished_turn_is_enqueued_again() -> None:
    job, broker = make_job(), MemoryBroker()
    broker.declare([job.lane])
    turns = await recovered(job, broker)
    assert (broker.depth(job.lane), turns.ended) == (1, [])


async def test_a_turn_whose_deployment_is_gone_is_ended_instead_of_stopping_every_start() -> None:
    turns = await recovered(make_job(), MemoryBroker())
    assert [(turn.state, turn.code) for turn in turns.ended] == [(TurnState.FAILED, "deployment_gone")]


async def test_a_turn_of_a_deployment_that_is_served_here_waits_in_a_lane_that_recovery_declares() -> None:
    job, broker = make_job(lane="small:b/07"), MemoryBroker()
    turns = Turns([opened(job)])
    sweeper = await make_sweeper(turns, broker, is_ours=lambda deployment: deployment == "small")
    assert await sweeper.recover() == 1
    assert (broker.depth(job.lane), turns.ended) == (1, [])


async def test_every_unfinished_turn_is_looked_at_and_renewed_however_many_there_are() -> None:
    clock, renewed = FakeClock(), list[str]()
    live = open_memory_live(clock, retention_s=60)
    jobs = [make_job(f"turn_{number:04}", deadline=clock.now() + 600) for number in range(1201)]
    jobs[-1] = make_job("turn_last", created=200.0, deadline=clock.now() - 1)
    for job in jobs:
        await live.log.open(job.id, encode(job), reader_ttl_s=None)
    turns = Turns([opened(job) for job in jobs])
    sweeper = await make_sweeper(turns, MemoryBroker(), renewed=renewed, clock=clock, live=live)
    await sweeper.sweep()
    assert [(turn.id, turn.state) for turn in turns.ended] == [("turn_last", TurnState.EXPIRED)]
    assert len(renewed) == len(set(renewed)) == 1201


async def test_every_unfinished_turn_is_recovered_however_many_there_are() -> None:
    jobs, broker = [make_job(f"turn_{number:04}") for number in range(1201)], MemoryBroker()
    broker.declare([jobs[0].lane])
    turns = Turns([opened(job) for job in jobs])
    assert await (await make_sweeper(turns, broker)).recover() == 1201
    assert broker.depth(jobs[0].lane) == 1201


async def test_only_a_turn_whose_version_is_gone_is_ended_as_such() -> None:
    clock = FakeClock()
    live = open_memory_live(clock, retention_s=60)
    jobs = [make_job(f"turn_{version}", version=version, deadline=clock.now() + 600) for version in ("v1", "v2")]
    for job in jobs:
        await live.log.open(job.id, encode(job), reader_ttl_s=None)
    turns = Turns([opened(job) for job in jobs])
    gone = GoneVersions(live.presences, clock, is_removed=lambda job: {"v1": False, "v2": True}[job.version])
    sweeper = await make_sweeper(turns, MemoryBroker(), clock=clock, live=live, gone=gone)
    await sweeper.sweep()
    assert [(turn.id, turn.state, turn.code) for turn in turns.ended] == [("turn_v2", TurnState.FAILED, "version_gone")]
    view = await live.log.read("turn_v2", after=0)
    assert view is not None
    assert view.chunks[-1].code == "version_gone"


async def test_a_turn_that_cannot_be_enqueued_just_now_is_not_ended() -> None:
    job, broker = make_job(), MemoryBroker(max_waiting=0)
    broker.declare([job.lane])
    turns = await recovered(job, broker)
    assert turns.ended == []


async def test_who_stands_by_notices_that_the_leases_were_lost_and_takes_nobody_for_dead() -> None:
    class Leases(MemoryLeases):
        """Forgets everything at will."""

        run = "1"
        num_asked = 0

        async def run_id(self) -> str:
            self.num_asked += 1
            return self.run

    clock = FakeClock()
    leases = Leases(clock)
    sweeper = await make_sweeper(Turns([]), MemoryBroker(), leads=lambda: False)
    sweeper._liveness = liveness = Liveness(leases, clock, lease_s=1.5)
    running = asyncio.create_task(sweeper.run())
    try:
        async with asyncio.timeout(60.0):
            while not leases.num_asked:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.005)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    leases.run = "2"
    assert await liveness.alive("w1")


async def test_old_turns_are_looked_for_less_often_than_unfinished_ones() -> None:
    clock, turns = FakeClock(), Turns([])
    sweeper = await make_sweeper(turns, MemoryBroker(), clock=clock)
    for _ in range(30):
        await sweeper.sweep()
        clock.advance(1.0)
    assert (turns.num_sweeps, turns.num_purges) == (30, 5)


class CountedLog(MemoryTokenLog):
    """Notes what is looked at together; fails for the turns it is told to."""

    def __init__(self, clock: FakeClock, wakeups: MemoryWakeups) -> None:
        super().__init__(clock, wakeups, retention_s=60)
        self.asked: list[list[str]] = []
        self.broken: set[str] = set()

    async def views(self, job_ids: Sequence[str]) -> Sequence[LogView | None]:
        self.asked.append(list(job_ids))
        if self.broken.intersection(job_ids):
            raise DependencyDown("A part of the log is away.")
        return await super().views(job_ids)


class Waiting:
    """Three jobs on the queue since a while, and a sweeper; ``hints`` are those that workers get."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        now = self.clock.now()
        live = open_memory_live(self.clock, retention_s=60)
        wakeups = MemoryWakeups()
        self.log = CountedLog(self.clock, wakeups)
        self.live = replace(live, log=self.log, wakeups=wakeups)
        lanes = {"turn_1": "small/01", "turn_2": "small/01", "turn_3": "small/02"}
        self.jobs = [make_job(name, lane=lane, created=now, deadline=now + 600) for name, lane in lanes.items()]
        self.turns, self.broker = Turns([opened(job) for job in self.jobs]), MemoryBroker()
        self.broker.declare(["small/01", "small/02"])

    async def hints(self, *, watch: bool = False) -> list[str]:
        """The lanes that one sweep hints at, or one look at the owners' lifelines."""
        found = []
        async with self.live.wakeups.listen(work_channel(self.jobs[0].deployment)) as listener:
            await (self.sweeper.watch() if watch else self.sweeper.sweep())
            while payload := await listener.next(0.0):
                found.append(decode_hint(payload).lane)
        return found

    async def open(self) -> "Waiting":
        for job in self.jobs:
            await self.log.open(job.id, encode(job), reader_ttl_s=None)
        self.sweeper = await make_sweeper(self.turns, self.broker, clock=self.clock, live=self.live)
        return self


async def test_the_lanes_of_an_owner_whose_lifeline_is_cut_are_hinted_at_a_few_times() -> None:
    waiting = await Waiting().open()
    await waiting.live.leases.hold("w1", 10.0)
    for job in waiting.jobs[:2]:
        await waiting.log.claim(job.id, "w1", over=0)
    async with waiting.live.wakeups.listen(lifeline("w1")):
        await waiting.sweeper.sweep()
        assert await waiting.hints(watch=True) == []
    assert [await waiting.hints(watch=True) for _ in range(4)] == [["small/01"], ["small/01"], ["small/01"], []]


async def test_who_stands_by_looks_at_no_lifeline() -> None:
    waiting = await Waiting().open()
    await waiting.live.leases.hold("w1", 10.0)
    await waiting.log.claim("turn_1", "w1", over=0)
    await waiting.sweeper.sweep()
    waiting.sweeper._leads = lambda: False
    assert await waiting.hints(watch=True) == []


async def test_the_hint_of_a_job_that_waits_is_repeated_once_for_each_lane() -> None:
    waiting = await Waiting().open()
    assert await waiting.hints() == []  # each has just been hinted at by its gateway
    waiting.clock.advance(1.0)
    assert await waiting.hints() == ["small/01", "small/02"]
    await waiting.live.leases.hold("w1", 10.0)
    for job in waiting.jobs[:2]:
        await waiting.log.claim(job.id, "w1", over=0)
    assert await waiting.hints() == ["small/02"]
    await waiting.log.flag("turn_3", cancel=True)
    assert await waiting.hints() == []


async def test_a_sweep_looks_at_all_turns_together() -> None:
    waiting = await Waiting().open()
    await waiting.sweeper.sweep()
    assert waiting.log.asked == [["turn_1", "turn_2", "turn_3"]]


async def test_a_turn_that_cannot_be_looked_at_hides_no_other() -> None:
    waiting = await Waiting().open()
    waiting.log.broken = {"turn_2"}
    waiting.clock.advance(600.0)
    await waiting.sweeper.sweep()
    assert [(turn.id, turn.state) for turn in waiting.turns.ended] == [
        ("turn_1", TurnState.EXPIRED),
        ("turn_3", TurnState.EXPIRED),
    ]


async def test_a_turn_that_no_worker_has_begun_ends_without_cost_and_one_that_was_begun_with_its_prompt() -> None:
    waiting = await Waiting().open()
    await waiting.log.claim("turn_1", "w1", over=0)  # its lease has ended
    waiting.clock.advance(600.0)
    await waiting.sweeper.sweep()
    prompts = {turn.id: turn.usage.prompt_tokens for turn in waiting.turns.ended}
    assert prompts == {"turn_1": waiting.jobs[0].num_prompt_tokens, "turn_2": 0, "turn_3": 0}
