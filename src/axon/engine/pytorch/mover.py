"""Copies KV blocks of PyTorch's memory on a CPU to slots and back. Knows no scheduler and no files."""

import time

import numpy as np
import torch

from axon.engine.copies import Copies
from axon.engine.pytorch.kv_memory import KVMemory
from axon.engine.runner import Moved


class TorchMover:
    """Slots [slot, key or value, layer, kv head, token, dimension] in plain memory."""

    def __init__(self, kv: KVMemory, num_slots: int) -> None:
        self._sides = (kv.keys, kv.values)
        num_layers, num_heads, _, block_size, dim = kv.keys.shape
        shape = (num_slots, 2, num_layers, num_heads, block_size, dim)
        num_bytes = int(np.prod(shape)) * kv.keys.dtype.itemsize
        self._memory = np.zeros(num_bytes, np.uint8)
        self._slots = torch.from_numpy(self._memory).view(kv.keys.dtype).view(shape)

    @property
    def memory(self) -> memoryview:
        return self._memory.data

    @torch.inference_mode()
    def move(self, copies: Copies) -> Moved:
        """Makes the copies."""
        began = time.perf_counter()
        for index, side in enumerate(self._sides):
            for load in copies.loads:
                for slot, block_id in zip(load.slots, load.block_ids, strict=True):
                    side[:, :, block_id].copy_(self._slots[slot, index])
            for save in copies.saves:
                self._slots[save.slot, index].copy_(side[:, :, save.block_id])
        return Moved(time.perf_counter() - began)
