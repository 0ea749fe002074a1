"""The device's times on the host's clock, with events that are no device's."""

import threading
from collections.abc import Iterator

import pytest

from axon.engine.cuda.step.device_clock import DeviceClock
from axon.engine.phases import begin_steps, timeline


class FakeEvent:
    """Each record is 3 ms after the last one."""

    now_ms = 0.0

    def __init__(self) -> None:
        self.at_ms: float | None = None

    def record(self) -> None:
        FakeEvent.now_ms += 3.0
        self.at_ms = FakeEvent.now_ms

    def synchronize(self) -> None:
        assert self.at_ms is not None

    def elapsed_time(self, end_event: "FakeEvent") -> float:
        assert self.at_ms is not None
        assert end_event.at_ms is not None
        return end_event.at_ms - self.at_ms


@pytest.fixture
def recording() -> Iterator[None]:
    stop = threading.Event()
    finish = begin_steps(60.0, stop)
    yield
    stop.set()
    finish()


@pytest.mark.usefixtures("recording")
def test_a_batch_is_told_with_its_time_on_the_device() -> None:
    clock, arrivals = DeviceClock(FakeEvent), list[str]()
    recorded = timeline()
    assert recorded is not None
    recorded.begin_step()
    for _ in range(2):
        clock.begin()
        clock.begin()  # the second half of the same batch
        clock.told(lambda: arrivals.append("arrived"))()
    recorded.end_step(sequences=1, tokens=1)
    [step] = recorded.result().steps
    assert [(each.name, each.us) for each in step.device] == [("batch", 3000), ("batch", 3000)]
    first, second = step.device
    assert second.start_us - first.start_us == 6000
    assert arrivals == ["arrived", "arrived"]


def test_nothing_is_added_while_nobody_records_or_without_a_device() -> None:
    def arrived() -> None:
        """Waits for nothing."""

    clock = DeviceClock(FakeEvent)
    clock.begin()
    assert clock.told(arrived) is arrived
    without = DeviceClock(None)
    without.begin()
    assert without.told(arrived) is arrived


@pytest.mark.usefixtures("recording")
def test_a_batch_that_began_before_the_recording_is_left_out() -> None:
    def arrived() -> None:
        """Waits for nothing."""

    assert DeviceClock(FakeEvent).told(arrived) is arrived
