"""The memory behind the KV blocks: keys and values as tensors. Knows no sequences; the pool decides who holds what."""

import numpy as np
import torch

from axon.engine.load.architecture import Architecture


class KVMemory:
    """Keys and values of every block: [layer, kv head, block, token, dimension] each."""

    def __init__(self, architecture: Architecture, num_blocks: int, block_size: int, dtype: torch.dtype) -> None:
        self.block_size = block_size
        self.spare_block = num_blocks
        """An extra block that the pool does not hand out: padding is written to it and read from it."""
        shape = (
            architecture.num_layers,
            architecture.num_kv_heads,
            num_blocks + 1,
            block_size,
            architecture.head_dim,
        )
        self.keys = _lazy_zeros(shape, dtype)
        self.values = _lazy_zeros(shape, dtype)

    def write(self, layer: int, slots: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Stores one row of [kv head, dimension] in each slot; a slot is block id x block size + offset."""
        for memory, rows in ((self.keys, keys), (self.values, values)):
            memory[layer].flatten(1, 2).index_copy_(1, slots, rows.transpose(0, 1))


def block_bytes(architecture: Architecture, block_size: int, dtype: torch.dtype) -> int:
    """Memory of one block over all layers, keys and values."""
    numbers_per_token = 2 * architecture.num_layers * architecture.num_kv_heads * architecture.head_dim
    return numbers_per_token * block_size * dtype.itemsize


def _lazy_zeros(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Zeros, because a masked key must be finite. numpy's take memory on first use, torch's at once."""
    num_bytes = int(np.prod(shape)) * dtype.itemsize
    return torch.from_numpy(np.zeros(num_bytes, dtype=np.uint8)).view(dtype).view(shape)
