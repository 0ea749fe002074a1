"""What kernels compute, in plain PyTorch: the reference for them. Slow, and runs anywhere."""

import torch
from torch.nn import functional

from axon.engine.cuda.rows import Rows, quantise, widen


def attend(
    queries: torch.Tensor,
    kv: torch.Tensor,
    layer: int,
    tables: torch.Tensor,
    slots: torch.Tensor,
    positions: torch.Tensor,
) -> torch.Tensor:
    """Attention of each query [row, head, dim] up to its own position, whose key and value are written already.

    ``kv`` is [block, layer, key or value, kv head, token, dim].
    """
    block_size, dim = kv.shape[4], kv.shape[5]
    group_size = queries.shape[1] // kv.shape[3]
    rows = []
    for query, slot, position in zip(queries, slots.tolist(), positions.tolist(), strict=True):
        num_blocks = position // block_size + 1
        blocks = kv[tables[slot, :num_blocks].long(), layer].float()
        keys, values = blocks.permute(1, 2, 0, 3, 4).reshape(2, kv.shape[3], -1, dim)[:, :, : position + 1]
        heads = query.float().view(-1, group_size, dim)
        weights = torch.softmax(heads @ keys.transpose(1, 2) * dim**-0.5, dim=-1)
        rows.append((weights @ values).reshape(-1, dim))
    return torch.stack(rows).to(queries.dtype)


def add_norm(wide: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[Rows, torch.Tensor]:
    """Rows times the weights of a norm in fp8, and the factor of each row, which the kernels put into its scale."""
    return quantise(wide * weight.float()), torch.rsqrt(wide.square().mean(-1) + eps)


def gated(rows: Rows, gate_up: Rows) -> torch.Tensor:
    """silu of the upper half of a product times its lower half."""
    first, second = (widen(rows) @ widen(gate_up).T).chunk(2, -1)
    return functional.silu(first) * second
