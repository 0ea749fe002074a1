"""The queue twin's own: its bounds."""

import pytest

from axon.adapters.queue.memory import MemoryBroker
from axon.errors import DependencyDown
from axon.ports.queue import OWN_TTL_S
from axon.runtime.clock import FakeClock


async def test_a_full_lane_refuses_and_others_go_on() -> None:
    queue = MemoryBroker(max_waiting=1).connect()
    await queue.open()
    await queue.declare(["a", "b"])
    await queue.publish("a", b"1")
    with pytest.raises(DependencyDown) as refusal:
        await queue.publish("a", b"2")
    assert refusal.value.code == "queue_full"
    await queue.publish("b", b"3")


async def test_a_delivery_returns_even_to_a_full_lane() -> None:
    queue = MemoryBroker(max_waiting=1).connect()
    await queue.open()
    await queue.declare(["a"])
    await queue.publish("a", b"1")
    delivery = await queue.take(["a"])
    assert delivery is not None
    await queue.publish("a", b"2")
    await queue.give_back(delivery)
    assert await queue.depths(["a"]) == {"a": 2}


async def test_what_belongs_to_no_lane_is_not_offered_and_stops_nobody() -> None:
    clock = FakeClock()
    queue = MemoryBroker(clock=clock).connect()
    await queue.open()
    await queue.declare(["a"])
    await queue.declare_own("@w1")
    assert not await queue.offer("@w1", "nowhere", b"1")
    clock.advance(2 * OWN_TTL_S)
    assert await queue.take(["a"]) is None
