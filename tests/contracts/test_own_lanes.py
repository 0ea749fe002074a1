"""The own lanes' contract: a worker's jobs first come to it, and to everybody when it does not take them in time."""

import pytest

from axon.ports.queue import OWN_MAX_WAITING, OWN_TTL_S, Delivery, Lanes
from tests.contracts.backends import QueueBackend

LANES = ("small/00", "small/01")
OWN = "small/@w1"


@pytest.fixture(autouse=True)
async def declared(queue: Lanes) -> None:
    await queue.declare(LANES)
    await queue.declare_own(OWN)


async def take(queues: QueueBackend, queue: Lanes, *lanes: str) -> Delivery:
    """What is there now, or a moment later: a broker moves a message in its own time."""
    for _ in range(50):
        if (delivery := await queue.take(lanes)) is not None:
            return delivery
        await queues.pass_time(0.1)
    raise AssertionError(f"nothing in {lanes}")


async def test_an_offered_job_is_in_the_own_lane_and_says_where_it_belongs(queues: QueueBackend, queue: Lanes) -> None:
    assert await queue.offer(OWN, LANES[1], b"a")
    assert await queue.take(LANES) is None
    delivery = await take(queues, queue, OWN)
    assert (delivery.body, delivery.lane, delivery.own, delivery.redelivered) == (b"a", LANES[1], True, False)
    assert await queue.take([OWN]) is None


async def test_a_job_of_a_tenants_lane_is_nobodys_own(queues: QueueBackend, queue: Lanes) -> None:
    await queue.publish(LANES[0], b"a")
    delivery = await take(queues, queue, OWN, *LANES)
    assert (delivery.lane, delivery.own) == (LANES[0], False)


async def test_a_worker_that_is_not_known_is_offered_nothing(queue: Lanes) -> None:
    assert not await queue.offer("small/@nobody", LANES[0], b"a")
    assert await queue.take(LANES) is None
    assert await queue.offer(OWN, LANES[0], b"b")


async def test_a_job_that_its_worker_does_not_take_goes_to_the_lane_it_belongs_to(
    queues: QueueBackend, queue: Lanes
) -> None:
    for body, lane in ((b"a", LANES[0]), (b"b", LANES[1]), (b"c", LANES[0])):
        assert await queue.offer(OWN, lane, body)
    await queues.pass_time(OWN_TTL_S + 0.1)
    assert [(await take(queues, queue, LANES[0])).body for _ in range(2)] == [b"a", b"c"]
    last = await take(queues, queue, LANES[1])
    assert (last.body, last.lane, last.own) == (b"b", LANES[1], False)
    assert await queue.take([OWN, *LANES]) is None


async def test_a_taken_job_stays_with_its_taker_however_long(queues: QueueBackend, queue: Lanes) -> None:
    await queue.offer(OWN, LANES[0], b"a")
    delivery = await take(queues, queue, OWN)
    await queues.pass_time(OWN_TTL_S + 0.3)
    assert await queue.take([OWN, *LANES]) is None
    await queue.ack(delivery)
    await queues.pass_time(0.3)
    assert await queue.take([OWN, *LANES]) is None


async def test_a_job_given_back_late_goes_to_the_lane_it_belongs_to(queues: QueueBackend, queue: Lanes) -> None:
    await queue.offer(OWN, LANES[0], b"a")
    delivery = await take(queues, queue, OWN)
    await queues.pass_time(OWN_TTL_S + 0.1)
    await queue.give_back(delivery)
    assert (await take(queues, queue, LANES[0])).body == b"a"


async def test_what_a_dead_worker_held_goes_to_the_lane_it_belongs_to(queues: QueueBackend, queue: Lanes) -> None:
    taker = await queues.connect()
    await queue.offer(OWN, LANES[0], b"a")
    await take(queues, taker, OWN)
    await queues.lose(taker)
    await queues.pass_time(OWN_TTL_S + 0.1)
    assert (await take(queues, queue, LANES[0])).body == b"a"


async def test_a_full_own_lane_refuses_and_nothing_is_lost_or_doubled(queues: QueueBackend, queue: Lanes) -> None:
    bodies = [b"%d" % number for number in range(3 * OWN_MAX_WAITING)]
    taken_in = [body for body in bodies if await queue.offer(OWN, LANES[0], body)]
    assert OWN_MAX_WAITING <= len(taken_in) < len(bodies)
    await queues.pass_time(OWN_TTL_S + 0.1)
    assert sorted([(await take(queues, queue, LANES[0])).body for _ in taken_in]) == sorted(taken_in)
    assert await queue.take([OWN, *LANES]) is None
    assert await queue.offer(OWN, LANES[0], b"again")


async def test_declaring_again_keeps_what_waits(queues: QueueBackend, queue: Lanes) -> None:
    await queue.offer(OWN, LANES[0], b"a")
    await queue.declare_own(OWN)
    assert (await take(queues, queue, OWN)).body == b"a"
