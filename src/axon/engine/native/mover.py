"""Copies the native kernels' KV blocks to slots and back. Knows no scheduler and no files."""

import time

import numpy as np

from axon.engine.copies import Copies
from axon.engine.native.model import NativeModel
from axon.engine.runner import Moved


class NativeMover:
    """Slots in plain memory, which takes up room when it is first written."""

    def __init__(self, model: NativeModel, num_slots: int) -> None:
        self._model = model  # whose memory must stay
        self._blocks = model.blocks
        self._slots = np.zeros((num_slots, self._blocks.shape[1]), np.uint8)

    @property
    def memory(self) -> memoryview:
        return self._slots.reshape(-1).data

    def move(self, copies: Copies) -> Moved:
        """Makes the copies; the kernels do not run meanwhile."""
        began = time.perf_counter()
        for load in copies.loads:
            for slot, block_id in zip(load.slots, load.block_ids, strict=True):
                self._blocks[block_id] = self._slots[slot]
        for save in copies.saves:
            self._slots[save.slot] = self._blocks[save.block_id]
        return Moved(time.perf_counter() - began)
