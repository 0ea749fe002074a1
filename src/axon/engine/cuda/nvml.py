"""Utilisation and memory of this host's GPUs, read from NVIDIA's management library (NVML). Imports no torch.

The maintained binding ``nvidia-ml-py`` (pynvml) is used where it is installed. It is no dependency, because three calls
of the driver's library do the same on machines where nothing can be installed; without either, nothing is reported.
"""

import ctypes
import importlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from axon.engine.protocol.messages import Gpu

logger = logging.getLogger(__name__)

_LIBRARY = "libnvidia-ml.so.1"
_PERIOD_S = 1.0


class Meter(Protocol):
    """Reads one GPU."""

    def read(self, uuid: str) -> tuple[float, int]:
        """Utilisation from 0 to 1, and used memory in bytes."""
        ...


class Gauge:
    """The readings of an engine's GPUs: asked for at every step, read once a second."""

    def __init__(self, meter: Meter, uuids: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._meter = meter
        self._uuids = uuids
        self._clock = clock
        self._read_at = float("-inf")
        self._gpus: list[Gpu] = []

    def __call__(self) -> list[Gpu]:
        """The last readings; none any more after a reading that failed."""
        now = self._clock()
        if self._uuids and now - self._read_at >= _PERIOD_S:
            self._read_at = now
            try:
                self._gpus = [Gpu(index, *self._meter.read(uuid)) for index, uuid in enumerate(self._uuids)]
            except Exception as error:
                logger.warning(
                    "GPU utilisation is no longer reported, because NVML failed: %s",
                    error,
                    extra={"axon_event": "gpu.not_reported"},
                )
                self._uuids, self._gpus = (), []
        return self._gpus


class PyNvml:
    """Reads through the package ``nvidia-ml-py``."""

    def __init__(self, module: Any) -> None:
        self._nvml = module
        module.nvmlInit()

    def read(self, uuid: str) -> tuple[float, int]:
        """Utilisation from 0 to 1, and used memory in bytes."""
        handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
        memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
        return self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100, int(memory.used)


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Driver:
    """Reads through the driver's library, by ctypes."""

    def __init__(self, library: Any) -> None:
        self._nvml = library
        self._call("nvmlInit_v2")

    def read(self, uuid: str) -> tuple[float, int]:
        """Utilisation from 0 to 1, and used memory in bytes."""
        handle, utilization, memory = ctypes.c_void_p(), _Utilization(), _Memory()
        self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(handle))
        self._call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(utilization))
        self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
        return utilization.gpu / 100, memory.used

    def _call(self, name: str, *arguments: Any) -> None:
        if code := getattr(self._nvml, name)(*arguments):
            raise OSError(f"{name} answered {code}")


def open_meter() -> Meter | None:
    """The reader that works on this host; None if there is none."""
    try:
        return PyNvml(importlib.import_module("pynvml"))
    except Exception as error:
        logger.debug("no pynvml: %s", error, extra={"axon_event": "gpu.not_reported"})
    try:
        return Driver(ctypes.CDLL(_LIBRARY))
    except (OSError, AttributeError) as error:
        logger.debug("no %s: %s", _LIBRARY, error, extra={"axon_event": "gpu.not_reported"})
        return None


def open_gauge(uuids: Sequence[str]) -> Gauge | None:
    """A gauge over the GPUs with these UUIDs, as the driver writes them (``GPU-…``); None without NVML."""
    meter = open_meter()
    return Gauge(meter, uuids) if meter else None
