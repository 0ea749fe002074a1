"""Taking: every lane has its turn, none is asked that nobody spoke of, and who is short is taken from without room."""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, cast

from axon.adapters.live.memory.live import open_memory_live
from axon.adapters.queue.memory import MemoryBroker
from axon.dispatch.dispatch import work_channel
from axon.dispatch.hint import Hint, encode_hint
from axon.domain.fairness.lane import lane_names
from axon.domain.tenants.tenant import Tier
from axon.ports.queue import Delivery
from axon.telemetry.metrics import Metrics
from axon.text.tokenizer import ByteTokenizer
from axon.worker.identity import Identity
from axon.worker.job.hands import Hands
from axon.worker.job.running import Running
from axon.worker.job.trials import Trials
from axon.worker.queue.taking import Taking
from tests.contracts.builders import make_job
from tests.sim.loop import SimLoop

LANES = ("small/00", "small/01", "small/02")
ALL_LANES = lane_names("small", len(LANES))
OWN = "small/@w1"


class Taker:
    """A worker with so much room, whose jobs never end; a body is the name of its tenant and a number."""

    def __init__(self, room: int) -> None:
        self.hands, self.taken = Hands(Trials(strike_limit=2)), list[bytes]()
        self.hands.slots = room
        self._numbers = itertools.count(1)

    async def start(self, delivery: Delivery) -> None:
        self.taken.append(delivery.body)
        self.hold(delivery.body.decode()[0], delivery)

    def hold(self, tenant: str, delivery: Delivery, *, is_paused: bool = False) -> None:
        job = make_job(f"turn_{next(self._numbers)}", tenant=tenant, lane=delivery.lane)
        running = Running(job=job, delivery=delivery, epoch=1, tokenizer=ByteTokenizer(), is_paused=is_paused)
        self.hands.take(running)


_NONE: Mapping[str, int] = {}


def take_all(
    published: list[tuple[str, bytes]], *, room: int, hints: Sequence[Hint] = (), held_back: Mapping[str, int] = _NONE
) -> tuple[list[bytes], list[list[str]]]:
    """What is taken within half a second, before anything is looked at again, and where was looked for it.

    ``hints`` come after the worker has taken what it could.
    """
    loop = SimLoop()
    broker = MemoryBroker(clock=loop)
    broker.declare(ALL_LANES)
    broker.declare_own(OWN)
    asked: list[list[str]] = []
    taker = Taker(room)
    for tenant, number in held_back.items():
        for _ in range(number):
            taker.hold(tenant, Delivery(tag=0, lane=LANES[0], body=b"", redelivered=False), is_paused=True)
    live = open_memory_live(loop, retention_s=3600.0)

    class Queue:
        async def take(self, lanes: list[str]) -> Delivery | None:
            asked.append(list(lanes))
            return broker.take(lanes)

        async def depths(self, lanes: list[str]) -> dict[str, int]:
            return {lane: broker.depth(lane) for lane in lanes}

    async def story() -> None:
        taking = Taking(
            identity=Identity(deployment="small", incarnation="worker-1"),
            hands=taker.hands,
            num_lanes=len(LANES),
            own_lane="w1",
            queue=cast("Any", Queue()),
            live=cast("Any", live),
            clock=loop,
            metrics=Metrics(),
        )
        for lane, body in published:
            assert lane != OWN or broker.offer(OWN, LANES[0], body)
            if lane != OWN:
                broker.publish(lane, body)
        tasks = [asyncio.ensure_future(each) for each in (taking.listen(), taking.look(), taking.run(taker.start))]
        await asyncio.sleep(0.2)
        for hint in hints:
            await live.wakeups.notify(work_channel("small"), encode_hint(hint))
        await asyncio.sleep(0.3)
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
    assert asked == [[LANES[2]]] * 6  # once more than there are jobs


def test_who_has_an_engines_worth_held_back_takes_nobody_elses_place() -> None:
    hints = [
        Hint(lane=LANES[0], tenant="a", weight=1.0, reserved=0.0),
        Hint(lane=LANES[1], tenant="b", weight=1.0, reserved=0.0),
    ]
    taken, _ = take_all([], room=2, hints=hints, held_back={"a": 2})
    assert taken == []
    _, asked = take_all([], room=2, hints=hints, held_back={"a": 2})
    assert asked == [[LANES[1]]]
    _, asked = take_all([], room=2, hints=hints, held_back={"a": 1})
    assert sorted(asked[0]) == [LANES[0], LANES[1]]


def test_a_worker_without_room_asks_nobody() -> None:
    taken, asked = take_all([(LANES[0], b"a"), (LANES[0], b"b")], room=1)
    assert (taken, len(asked)) == ([b"a"], 1)


def hint(lane: str, tenant: str, **changes: Any) -> Hint:
    return Hint(lane=lane, tenant=tenant, **changes)


def test_a_tenant_that_is_short_of_its_part_is_taken_without_a_free_slot() -> None:
    flood = [(LANES[0], b"a%d" % number) for number in range(20)]
    light = [(LANES[1], b"b%d" % number) for number in range(20)]
    taken, _ = take_all(flood, room=4)
    assert taken == [b"a0", b"a1", b"a2", b"a3"]
    taken, _ = take_all([*flood, *light], room=4, hints=[hint(LANES[0], "a")])
    assert [each[:1] for each in taken].count(b"a") == 2
    heard = [hint(LANES[0], "a"), hint(LANES[1], "b")]
    taken, _ = take_all([*flood, (LANES[1], b"b0"), (LANES[1], b"b1")], room=4, hints=heard)
    assert [each[:1] for each in taken].count(b"b") == 2


def test_nobody_is_taken_beyond_its_part_nor_more_than_twice_the_slots() -> None:
    flood = [(LANES[0], b"a%d" % number) for number in range(20)]
    others = [("small/priority/01", b"b%d" % number) for number in range(20)]
    heard = [hint(LANES[0], "a"), hint("small/priority/01", "b", weight=1000.0)]
    taken, _ = take_all([*flood, *others], room=4, hints=heard)
    assert len(taken) <= 8


def test_what_is_flex_waits_for_the_others() -> None:
    assert Tier.FLEX.value in ALL_LANES[-1]
    published = [(ALL_LANES[-1], b"f1"), (LANES[0], b"a1"), (LANES[0], b"a2")]
    taken, _ = take_all(published, room=3)
    assert taken == [b"a1", b"a2", b"f1"]
    taken, _ = take_all(published, room=2, hints=[hint(ALL_LANES[-1], "f")])
    assert taken == [b"a1", b"a2"]
