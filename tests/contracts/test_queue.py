"""The queue's contract: at least once, in order, and back when a taker dies."""

import pytest

from axon.errors import DependencyDown
from axon.ports.queue import Delivery, Queue
from tests.contracts.backends import QueueBackend

LANES = ("small/00", "small/01")


@pytest.fixture(autouse=True)
async def declared(queue: Queue) -> None:
    await queue.declare(LANES)


async def take(queue: Queue, *lanes: str) -> Delivery:
    delivery = await queue.take(lanes or LANES)
    assert delivery is not None
    return delivery


async def test_an_empty_lane_answers_none_at_once(queue: Queue) -> None:
    assert await queue.take(LANES) is None


async def test_a_lane_is_taken_in_the_order_it_was_published(queue: Queue) -> None:
    for body in (b"a", b"b", b"c"):
        await queue.publish(LANES[0], body)
    assert [(await take(queue)).body for _ in range(3)] == [b"a", b"b", b"c"]


async def test_the_first_lane_that_has_a_job_is_taken_from(queue: Queue) -> None:
    await queue.publish(LANES[0], b"zero")
    await queue.publish(LANES[1], b"one")
    first = await take(queue, LANES[1], LANES[0])
    assert (first.body, first.lane) == (b"one", LANES[1])
    assert (await take(queue, LANES[1], LANES[0])).body == b"zero"


async def test_a_new_delivery_says_that_nobody_has_seen_it(queue: Queue) -> None:
    await queue.publish(LANES[0], b"a")
    assert not (await take(queue)).redelivered


async def test_an_acked_delivery_never_comes_back(queues: QueueBackend, queue: Queue) -> None:
    await queue.publish(LANES[0], b"a")
    await queue.ack(await take(queue))
    await queues.lose(queue)
    assert await (await queues.connect()).take(LANES) is None


async def test_acking_twice_is_harmless(queue: Queue) -> None:
    await queue.publish(LANES[0], b"a")
    await queue.publish(LANES[0], b"b")
    delivery = await take(queue)
    await queue.ack(delivery)
    await queue.ack(delivery)
    assert (await take(queue)).body == b"b"


async def test_a_delivery_given_back_comes_first_and_marked(queue: Queue) -> None:
    await queue.publish(LANES[0], b"a")
    await queue.publish(LANES[0], b"b")
    await queue.give_back(await take(queue))
    again = await take(queue)
    assert (again.body, again.redelivered) == (b"a", True)


async def test_a_delivery_given_back_twice_comes_once(queue: Queue) -> None:
    await queue.publish(LANES[0], b"a")
    delivery = await take(queue)
    await queue.give_back(delivery)
    await queue.give_back(delivery)
    assert (await take(queue)).body == b"a"
    assert await queue.take(LANES) is None


async def test_an_ack_after_giving_back_takes_nothing_away(queue: Queue) -> None:
    await queue.publish(LANES[0], b"a")
    delivery = await take(queue)
    await queue.give_back(delivery)
    await queue.ack(delivery)
    assert (await take(queue)).body == b"a"


async def test_a_taken_delivery_is_not_handed_out_twice(queues: QueueBackend, queue: Queue) -> None:
    await queue.publish(LANES[0], b"a")
    await take(queue)
    assert await (await queues.connect()).take(LANES) is None


async def test_what_a_dead_taker_held_returns_in_order_and_marked(queues: QueueBackend, queue: Queue) -> None:
    taker = await queues.connect()
    for body in (b"a", b"b", b"c"):
        await queue.publish(LANES[0], body)
    await take(taker)
    await take(taker)
    await queues.lose(taker)
    back = [await take(queue) for _ in range(3)]
    assert [(delivery.body, delivery.redelivered) for delivery in back] == [(b"a", True), (b"b", True), (b"c", False)]


async def test_a_dead_taker_is_told_so(queues: QueueBackend) -> None:
    taker = await queues.connect()
    await queues.lose(taker)
    with pytest.raises(DependencyDown):
        await taker.take(LANES)


async def test_depths_count_what_waits_and_not_what_is_taken(queue: Queue) -> None:
    for body in (b"a", b"b"):
        await queue.publish(LANES[0], body)
    await take(queue)
    assert await queue.depths(LANES) == {LANES[0]: 1, LANES[1]: 0}


async def test_declaring_again_keeps_what_waits(queue: Queue) -> None:
    await queue.publish(LANES[0], b"a")
    await queue.declare(LANES)
    assert (await take(queue)).body == b"a"


async def test_publishing_to_a_lane_nobody_declared_is_refused_not_lost(queue: Queue) -> None:
    with pytest.raises(DependencyDown):
        await queue.publish("nowhere/00", b"a")
