"""Copies KV blocks between the GPU and pinned host memory on a stream of its own. Knows no scheduler and no files.

    compute stream   step n-1 │ step n ............ │ step n+1
    copy stream               │ copies of step n ── ┤           step n+1 waits for the copies, step n does not

Copies of step n begin when step n-1 is done, whose blocks they may read or replace, and run beside step n.
"""

from typing import Any
from weakref import finalize

import numpy as np
import torch

from axon.engine.copies import Copies
from axon.engine.cuda.memory.kv_memory import KVBlocks
from axon.errors import Misconfigured

_PORTABLE = 1
"""Flag of cudaHostRegister: pinned for every CUDA context."""


class CudaMoving:
    """Copies on their way; on a CPU, where tests run it, they are done at once."""

    def __init__(self, began: Any = None, done: Any = None) -> None:
        self._began, self._done = began, done

    def precede(self) -> None:
        """Has the steps that are launched from now on wait for the copies."""
        if self._done is not None:
            torch.cuda.current_stream().wait_event(self._done)

    def finish(self) -> float:
        """Waits until they are done; returns the seconds that they took."""
        if self._done is None:
            return 0.0
        self._done.synchronize()
        milliseconds: float = self._began.elapsed_time(self._done)
        return milliseconds / 1000


class CudaMover:
    """Slots of pinned memory, each as large as a block."""

    def __init__(self, kv: KVBlocks, num_slots: int) -> None:
        self._blocks = kv.tensor.view(torch.uint8).flatten(1)
        self._memory = np.zeros((num_slots, self._blocks.shape[1]), np.uint8)
        self._slots = torch.from_numpy(self._memory)
        self._stream: Any = None
        if kv.tensor.is_cuda:
            _pin(self._memory)
            self._stream = torch.cuda.Stream(kv.tensor.device)  # type: ignore[no-untyped-call]
            finalize(self, _unpin, self._memory, self._stream)

    @property
    def memory(self) -> memoryview:
        return self._memory.reshape(-1).data

    @torch.inference_mode()
    def move(self, copies: Copies) -> CudaMoving:
        """Begins the copies of a step that is launched next."""
        if self._stream is None:
            self._copy(copies)
            return CudaMoving()
        began, done = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            began.record()
            self._copy(copies)
            done.record()
        return CudaMoving(began, done)

    def _copy(self, copies: Copies) -> None:
        for load in copies.loads:
            for slot, block_id in zip(load.slots, load.block_ids, strict=True):
                self._blocks[block_id].copy_(self._slots[slot], non_blocking=True)
        for save in copies.saves:
            self._slots[save.slot].copy_(self._blocks[save.block_id], non_blocking=True)


def _pin(memory: "np.ndarray[Any, Any]") -> None:
    """Pins memory; not torch's own pinned memory, which is rounded up to a power of two."""
    runtime: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    error = runtime.cudaHostRegister(memory.ctypes.data, memory.nbytes, _PORTABLE)
    if int(error):
        raise Misconfigured(
            f"engine.kv_host_bytes: {memory.nbytes} bytes of host memory could not be pinned (CUDA error {int(error)})"
        )


def _unpin(memory: "np.ndarray[Any, Any]", stream: Any) -> None:
    """Gives pinned memory back once no copy reads or writes it."""
    stream.synchronize()
    runtime: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    runtime.cudaHostUnregister(memory.ctypes.data)
