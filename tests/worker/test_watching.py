"""Deliveries that wait for somebody else's job are picked up when that one is gone."""

import asyncio
from dataclasses import replace
from typing import Any, cast

from axon.adapters.live.memory.live import open_memory_live
from axon.ownership.liveness import Liveness
from axon.ports.live import Live
from axon.ports.queue import Delivery
from axon.runtime.clock import FakeClock
from axon.worker.job.hands import Hands
from axon.worker.job.running import Running
from axon.worker.job.trials import Trials
from axon.worker.queue.parked import Parked
from axon.worker.watching import Watching
from tests.worker.job.builders import make_running


class Parts:
    """The parts around the watching, which remember what they are asked to do."""

    def __init__(self) -> None:
        self.started = list[int]()
        self.num_rounds = 0
        self.has_acted = asyncio.Event()

    async def start(self, delivery: Delivery) -> None:
        self.started.append(delivery.tag)
        self.has_acted.set()

    def check_progress(self) -> None:
        self.num_rounds += 1

    async def relieve(self) -> None: ...


def make_watching(parts: Parts, hands: Hands, parked: Parked, live: Live, clock: FakeClock) -> Watching:
    part, liveness = cast("Any", parts), Liveness(live.leases, clock, lease_s=1.5)
    return Watching(hands, parked, part, part, part, live=live, liveness=liveness, clock=clock)


async def test_what_a_dead_owner_had_is_started_before_the_next_look_at_everything(clock: FakeClock) -> None:
    live, parts, parked = open_memory_live(clock, retention_s=60.0), Parts(), Parked()
    await live.leases.hold("dead", 1.5)
    await live.leases.hold("alive", 60.0)
    watching = make_watching(parts, Hands(Trials(strike_limit=2)), parked, live, clock)
    for tag, owner in ((1, "dead"), (2, "alive"), (3, "")):
        parked.add(Delivery(tag=tag, lane="lane", body=b"", redelivered=True), owner)
    await watching._look_at_owners()
    assert parts.started == []
    clock.advance(2.0)
    running = asyncio.create_task(watching.run())
    await parts.has_acted.wait()
    running.cancel()
    assert (parts.started, parts.num_rounds) == ([1], 0)
    assert [delivery.tag for delivery in parked.take()] == [2, 3]


async def test_a_job_whose_end_is_asked_for_is_looked_at_at_once_and_others_are_not(clock: FakeClock) -> None:
    live, parts, hands = open_memory_live(clock, retention_s=60.0), Parts(), Hands(Trials(strike_limit=2))
    hands.take(mine := make_running())
    asked, has_asked = list[str](), asyncio.Event()

    def ask(running: Running) -> None:
        asked.append(running.job.id)
        has_asked.set()

    hands.on_news.append(ask)
    listening = asyncio.create_task(make_watching(parts, hands, Parked(), live, clock).listen())
    for job_id in ("other", mine.job.id):
        await live.log.open(job_id, b"job", reader_ttl_s=None)
    await asyncio.sleep(0)
    for job_id in ("other", mine.job.id):
        await live.log.flag(job_id, cancel=True)
    await has_asked.wait()
    listening.cancel()
    assert (asked, mine.must_ask) == ([mine.job.id], True)


async def test_a_cancelled_job_is_looked_at_only_while_it_says_nothing(clock: FakeClock) -> None:
    live, hands = open_memory_live(clock, retention_s=60.0), Hands(Trials(strike_limit=2))
    mine = make_running()
    mine.job = replace(mine.job, deadline=clock.now() + 60.0)
    hands.take(mine)
    await live.log.open(mine.job.id, b"job", reader_ttl_s=None)
    await live.log.flag(mine.job.id, cancel=True)
    watching = make_watching(Parts(), hands, Parked(), live, clock)
    mine.answered_at = clock.monotonic()  # the answer to its next append will tell it
    await watching._look_at_everything()
    assert not mine.must_ask
    clock.advance(1.0)
    await watching._look_at_everything()
    assert (mine.must_ask, mine.terminal) == (True, None)
