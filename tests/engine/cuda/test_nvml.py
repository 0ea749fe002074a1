"""Readings of GPUs, over libraries that are not here: both ways ask what NVIDIA's documentation says."""

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from axon.engine.cuda import nvml
from axon.engine.cuda.nvml import Driver, Gauge, Meter, PyNvml, open_gauge
from axon.engine.protocol.messages import Gpu

UUID = "GPU-1"


class FakePackage:
    """pynvml, as far as it is asked."""

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        return SimpleNamespace(used=7 << 30)

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:
        return SimpleNamespace(gpu=42 if handle == UUID else 0)


class FakeLibrary:
    """The driver's functions, which write through pointers and answer 0."""

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, handle: Any) -> int:
        handle._obj.value = 99
        return 0 if uuid == UUID.encode() else 6

    def nvmlDeviceGetUtilizationRates(self, handle: ctypes.c_void_p, rates: Any) -> int:
        rates._obj.gpu = 42 if handle.value == 99 else 0
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle: ctypes.c_void_p, memory: Any) -> int:
        memory._obj.used = 7 << 30
        return 0


@pytest.mark.parametrize("meter", [PyNvml(FakePackage()), Driver(FakeLibrary())], ids=["pynvml", "the driver"])
def test_utilisation_is_a_ratio_and_memory_is_bytes(meter: Meter) -> None:
    assert Gauge(meter, [UUID])() == [Gpu(0, 0.42, 7 << 30)]


def test_a_reading_is_taken_once_a_second() -> None:
    now = [10.0]
    reads: list[str] = []

    class Counting:
        def read(self, uuid: str) -> tuple[float, int]:
            reads.append(uuid)
            return 0.5, 1

    gauge = Gauge(Counting(), [UUID, "GPU-2"], clock=lambda: now[0])
    for step in range(30):
        now[0] = 10 + step / 10
        assert [gpu.index for gpu in gauge()] == [0, 1]
    assert reads == [UUID, "GPU-2"] * 3


def test_a_gpu_that_cannot_be_read_ends_the_watching_and_nothing_else() -> None:
    gauge = Gauge(Driver(FakeLibrary()), ["GPU-unknown"])
    assert gauge() == []
    assert gauge() == []


def test_without_any_library_nobody_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "_LIBRARY", "libno-such-thing.so.1")
    monkeypatch.setitem(sys.modules, "pynvml", None)  # as where it is not installed
    assert open_gauge([UUID]) is None
