"""Taking: every lane has its turn, and none is asked that nobody spoke of."""

import asyncio
from typing import Any, cast

from axon.adapters.live.memory_wakeups import MemoryWakeups
from axon.adapters.queue.memory import MemoryBroker
from axon.ports.queue import Delivery
from axon.telemetry.metrics import Metrics
from axon.worker.taking import Taking
from tests.sim.loop import SimLoop

LANES = ("small/00", "small/01", "small/02")
OWN = "small/@w1"


class Taker:
    """A worker with so much room, whose jobs never end."""

    def __init__(self, room: int) -> None:
        self.room, self.taken = room, list[bytes]()

    @property
    def has_room(self) -> bool:
        return len(self.taken) < self.room

    async def start(self, delivery: Delivery) -> None:
        self.taken.append(delivery.body)


def take_all(published: list[tuple[str, bytes]], *, room: int) -> tuple[list[bytes], list[list[str]]]:
    """What is taken within half a second, before anything is looked at again, and where was looked for it."""
    loop = SimLoop()
    broker = MemoryBroker(clock=loop)
    broker.declare(LANES)
    broker.declare_own(OWN)
    asked: list[list[str]] = []
    taker = Taker(room)

    class Queue:
        async def take(self, lanes: list[str]) -> Delivery | None:
            asked.append(list(lanes))
            return broker.take(lanes)

    async def story() -> None:
        taking = Taking(
            worker=taker,
            deployment="small",
            lanes=LANES,
            own=OWN,
            queue=cast("Any", Queue()),
            wakeups=MemoryWakeups(),
            metrics=Metrics(),
        )
        for lane, body in published:
            assert lane != OWN or broker.offer(OWN, LANES[0], body)
            if lane != OWN:
                broker.publish(lane, body)
        tasks = [asyncio.ensure_future(each) for each in (taking.listen(), taking.run())]
        await asyncio.sleep(0.5)
        for task in tasks:
            task.cancel()

    loop.run(story())
    return taker.taken, asked


def test_every_lane_has_its_turn() -> None:
    published = [(LANES[0], b"a1"), (LANES[0], b"a2"), (LANES[0], b"a3"), (LANES[1], b"b1"), (LANES[2], b"c1")]
    taken, _ = take_all(published, room=10)
    assert taken == [b"a1", b"b1", b"c1", b"a2", b"a3"]


def test_a_take_by_the_own_lane_is_its_tenants_turn() -> None:
    published = [(OWN, b"own"), (LANES[0], b"a1"), (LANES[1], b"b1")]
    taken, _ = take_all(published, room=10)
    assert taken == [b"own", b"b1", b"a1"]


def test_a_lane_that_had_nothing_is_not_asked_again_before_somebody_speaks_of_it() -> None:
    _, asked = take_all([(LANES[2], b"%d" % number) for number in range(5)], room=10)
    assert asked[0] == [OWN, *LANES]
    assert asked[1:] == [[LANES[2]]] * 5


def test_a_worker_without_room_asks_nobody() -> None:
    taken, asked = take_all([(LANES[0], b"a"), (LANES[0], b"b")], room=1)
    assert (taken, len(asked)) == ([b"a"], 1)
