"""Parked deliveries: kept until somebody takes them, each once."""

from axon.ports.queue import Delivery
from axon.worker.queue.parked import Parked


def make_delivery(tag: int) -> Delivery:
    return Delivery(tag=tag, lane="lane", body=b"", redelivered=False)


def test_a_delivery_is_taken_once() -> None:
    parked = Parked()
    for tag in (1, 2, 1):
        parked.add(make_delivery(tag))
    assert [delivery.tag for delivery in parked.take()] == [1, 2]
    assert parked.take() == []


def test_only_the_deliveries_of_the_named_owners_are_taken() -> None:
    parked = Parked()
    for tag, owner in ((1, "dead"), (2, "alive"), (3, ""), (4, "dead")):
        parked.add(make_delivery(tag), owner)
    assert parked.owners == {"dead", "alive"}
    assert [delivery.tag for delivery in parked.take_of({"dead"})] == [1, 4]
    assert parked.owners == {"alive"}
    assert [delivery.tag for delivery in parked.take()] == [2, 3]


def test_a_delivery_that_is_not_there_may_be_dropped() -> None:
    parked = Parked()
    parked.add(make_delivery(1))
    parked.drop(make_delivery(1))
    parked.drop(make_delivery(1))
    assert parked.take() == []
