"""The GPU memory behind the KV blocks, and how many blocks fit. Knows no sequences.

A block holds all layers of its tokens, so that it can leave the device as one piece.
"""

from functools import cached_property
from typing import Any

import torch

from axon.engine.cuda.rows import FP8
from axon.engine.load.architecture import Architecture

_DESCRIBED_BLOCK_SIZE = 64
"""With this block size a tile of keys is one block, which the copy engine (TMA) can load."""
_DESCRIBED_DIMS = {torch.bfloat16: (64, 128), FP8: (128,)}


class KVBlocks:
    """Keys and values [block, layer, key or value, kv head, token, dim], and the block tables of the sequences."""

    def __init__(
        self,
        architecture: Architecture,
        *,
        num_blocks: int,
        block_size: int,
        num_slots: int,
        table_width: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.block_size = block_size
        self.num_blocks = num_blocks
        self.table_width = table_width
        # One block more than the pool hands out: padding is written there.
        # Zeros, because unwritten positions are masked by weights of 0, and 0 times NaN is NaN.
        self.tensor = torch.zeros(
            num_blocks + 1,
            architecture.num_layers,
            2,
            architecture.num_kv_heads,
            block_size,
            architecture.head_dim,
            dtype=dtype,
            device=device,
        )
        self.tables = torch.full((num_slots + 1, table_width), num_blocks, dtype=torch.int32, device=device)

    @property
    def block_rows(self) -> int:
        """Rows [dim] in a block; a row is the key or value of one token in one head and layer."""
        return self.tensor[0, ..., 0].numel()

    @property
    def described(self) -> bool:
        """Whether the copy engine (TMA) can load a tile of keys."""
        dim = self.tensor.shape[-1]
        is_tile = self.block_size == _DESCRIBED_BLOCK_SIZE and dim in _DESCRIBED_DIMS.get(self.tensor.dtype, ())
        return is_tile and self.tensor.is_cuda and torch.cuda.get_device_capability(self.tensor.device) >= (9, 0)

    @cached_property
    def descriptor(self) -> Any:
        """The TMA descriptor over all rows; one load is a block of one head."""
        from triton.tools.tensor_descriptor import TensorDescriptor

        dim = self.tensor.shape[-1]
        return TensorDescriptor.from_tensor(self.tensor.view(-1, dim), [self.block_size, dim])

    def layer_row(self, layer: int) -> int:
        """The first row of a layer's keys in a block; its values follow them."""
        return layer * 2 * self.tensor.shape[3] * self.block_size


def block_bytes(architecture: Architecture, block_size: int, dtype: torch.dtype) -> int:
    """Memory of one block over all layers, keys and values."""
    numbers_per_token = 2 * architecture.num_layers * architecture.num_kv_heads * architecture.head_dim
    return numbers_per_token * block_size * dtype.itemsize


def blocks_in(free_bytes: int, *, total_bytes: int, fraction: float, peak_bytes: int, bytes_per_block: int) -> int:
    """Blocks that fit beside a step's peak memory if ``fraction`` of the device's memory may be filled."""
    reserved = int(total_bytes * (1 - fraction))
    return max(0, (free_bytes - reserved - peak_bytes) // bytes_per_block)
