"""Deliveries that wait for somebody else's job are picked up when that one is gone."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from axon.adapters.live.memory import open_memory_live
from axon.dispatch.liveness import Liveness
from axon.domain.turn import TurnState
from axon.ports.queue import Delivery
from axon.runtime.clock import FakeClock
from axon.worker.job.running import Running
from axon.worker.watching import Watching
from tests.worker.job.test_running import make_running


@dataclass
class Worker:
    """Remembers what it is to start."""

    started: list[int] = field(default_factory=list)
    running: Mapping[str, Running] = field(default_factory=dict)
    num_looks: int = 0
    asked: list[str] = field(default_factory=list)
    has_started: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, running: Running, state: TurnState, code: str = "", message: str = "") -> None: ...

    def ask(self, running: Running) -> None:
        self.asked.append(running.job.id)
        self.has_started.set()

    def watch_engine(self) -> None:
        self.num_looks += 1

    async def relieve(self) -> None: ...

    async def start(self, delivery: Delivery) -> None:
        self.started.append(delivery.tag)
        self.has_started.set()


async def test_what_a_dead_owner_had_is_started_before_the_next_look_at_everything(clock: FakeClock) -> None:
    live, worker = open_memory_live(clock, retention_s=60.0), Worker()
    liveness = Liveness(live.leases, clock, lease_s=1.5)
    await live.leases.hold("dead", 1.5)
    await live.leases.hold("alive", 60.0)
    watch = Watching(worker=worker, log=live.log, wakeups=live.wakeups, liveness=liveness, clock=clock)
    for tag, owner in ((1, "dead"), (2, "alive"), (3, "")):
        watch.park(Delivery(tag=tag, lane="lane", body=b"", redelivered=True), owner)
    await watch._look_at_owners()
    assert worker.started == []
    clock.advance(2.0)
    running = asyncio.create_task(watch.run())
    await worker.has_started.wait()
    running.cancel()
    assert (worker.started, worker.num_looks) == ([1], 0)
    assert [delivery.tag for delivery in watch.take_parked()] == [2, 3]


async def test_a_job_whose_end_is_asked_for_is_looked_at_at_once_and_others_are_not(clock: FakeClock) -> None:
    live, worker = open_memory_live(clock, retention_s=60.0), Worker(running={"mine": make_running()})
    liveness = Liveness(live.leases, clock, lease_s=1.5)
    watch = Watching(worker=worker, log=live.log, wakeups=live.wakeups, liveness=liveness, clock=clock)
    hearing = asyncio.create_task(watch.hear())
    for job_id in ("other", "mine"):
        await live.log.open(job_id, b"job", reader_ttl_s=None)
    await asyncio.sleep(0)
    for job_id in ("other", "mine"):
        await live.log.flag(job_id, cancel=True)
    await worker.has_started.wait()
    hearing.cancel()
    assert worker.asked == [worker.running["mine"].job.id]
