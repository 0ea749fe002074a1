"""The queue twin's own: its bound."""

import pytest

from axon.adapters.queue.memory import MemoryBroker
from axon.errors import DependencyDown


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
