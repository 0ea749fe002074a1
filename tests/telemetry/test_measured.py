"""Calls of services are timed, and a failure is seen until a call succeeds."""

import asyncio

import pytest

from axon.errors import Conflict, DependencyDown
from axon.runtime.clock import FakeClock
from axon.telemetry.measured import Dependency
from axon.telemetry.metrics import Metrics


class Store:
    """Fails in the way that it is told to."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.error: Exception | None = None
        self.name = "store"

    async def get(self, number: int) -> int:
        self.clock.advance(0.5)
        if self.error is not None:
            raise self.error
        return number

    def size(self) -> int:
        return 7


def test_calls_are_timed_and_a_failure_lasts_until_the_next_success() -> None:
    metrics, clock = Metrics(), FakeClock()
    store = Store(clock)
    measured = Dependency("store", metrics.services, clock).measured(store, "turns.")

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"axon_dependency_{name}", {"dep": "store", **labels})

    assert value("up") == 1
    assert asyncio.run(measured.get(3)) == 3
    assert (measured.size(), measured.name) == (7, "store")
    assert value("op_seconds_sum", op="turns.get") == 0.5
    store.error = DependencyDown()
    with pytest.raises(DependencyDown):
        asyncio.run(measured.get(3))
    assert (value("up"), value("errors_total", op="turns.get")) == (0, 1)
    store.error = Conflict("No.")
    with pytest.raises(Conflict):
        asyncio.run(measured.get(3))
    assert value("up") == 0  # nothing is known of the service
    store.error = None
    asyncio.run(measured.get(3))
    assert (value("up"), value("op_seconds_count", op="turns.get")) == (1, 2)
