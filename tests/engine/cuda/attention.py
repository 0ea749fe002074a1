"""The attention kernels against plain PyTorch: decodes at many lengths, chunks behind cached tokens. Imports Triton."""

from pathlib import Path

import torch

from axon.engine.cuda.kv_memory import KVBlocks
from axon.engine.cuda.model import CudaLlama
from axon.engine.cuda.reference import attend
from axon.engine.cuda.rows import Parts
from axon.engine.load.architecture import read_architecture
from axon.engine.load.weights import Weights


@torch.inference_mode()
def compare(folder: Path, device: torch.device, dtype: torch.dtype, block_size: int) -> None:
    """Asserts that what the kernels see is what the plain way sees."""
    torch.manual_seed(block_size)
    architecture = read_architecture(folder)
    with Weights(folder, dtype) as weights:
        model = CudaLlama(architecture, weights, device, max_model_len=512, max_rows=40)
    # Positions that turn nothing: the plain way knows attention alone.
    model._attending.tables = [(torch.ones_like(cos), torch.zeros_like(sin)) for cos, sin in model._attending.tables]
    width = 512 // block_size
    kv = KVBlocks(
        architecture,
        num_blocks=6 * width,
        block_size=block_size,
        num_slots=6,
        table_width=width,
        dtype=dtype,
        device=device,
    )
    kv.tensor.normal_()
    kv.tables[:6] = torch.randperm(6 * width).view(6, width).to(torch.int32)
    compare_decodes(model, kv)
    compare_chunks(model, kv)


def compare_decodes(model: CudaLlama, kv: KVBlocks) -> None:
    positions = torch.tensor([0, 1, kv.block_size - 1, kv.block_size, 200, 333], dtype=torch.int32)
    slots = torch.tensor([3, 0, 5, 1, 2, 4], dtype=torch.int32)
    qkv = make_rows(model, len(slots))
    seen = torch.full((len(slots), query_width(model)), torch.nan, dtype=model.dtype, device=model.device)
    positions_there, slots_there = positions.to(model.device), slots.to(model.device)
    layer, count = model._layers[1], len(slots)
    model._attending.decode(1, layer, Parts(qkv), positions_there, slots_there, count, seen, kv, pdl=False)
    queries = qkv[:, : query_width(model)].view(len(slots), model.architecture.num_heads, -1)
    assert_close(seen, attend(queries, kv.tensor, 1, kv.tables, slots, positions))


def compare_chunks(model: CudaLlama, kv: KVBlocks) -> None:
    chunks = [(2, 0, 70), (0, 37, 150), (4, 64, 2)]  # slot, first position, length
    rows = [(slot, position) for slot, first, length in chunks for position in range(first, first + length)]
    slots, positions = torch.tensor(rows, dtype=torch.int32).T.contiguous()
    tiles, start, size = [], 0, model.queries_per_tile
    for slot, first, length in chunks:
        tiles += [(start + n, min(size, length - n), first + n, slot) for n in range(0, length, size)]
        start += length
    inputs = {"positions": positions, "slots": slots, "tiles": torch.tensor([*tiles, (0, 0, 0, 0)], dtype=torch.int32)}
    qkv = make_rows(model, len(rows))
    queries = qkv[:, : query_width(model)].clone().view(len(rows), model.architecture.num_heads, -1)
    seen = torch.full((len(rows), query_width(model)), torch.nan, dtype=model.dtype, device=model.device)
    there = {name: each.to(model.device) for name, each in inputs.items()}
    model._attending.chunks(1, model._layers[1], Parts(qkv), there, 0, seen, kv)
    assert_close(seen, attend(queries, kv.tensor, 1, kv.tables, slots, positions))


def make_rows(model: CudaLlama, count: int) -> torch.Tensor:
    width = query_width(model) + 2 * model.architecture.num_kv_heads * model.architecture.head_dim
    return torch.randn(count, width).to(model.device, model.dtype)


def query_width(model: CudaLlama) -> int:
    return model.architecture.num_heads * model.architecture.head_dim


def assert_close(seen: torch.Tensor, expected: torch.Tensor) -> None:
    ours, theirs = seen.double(), expected.view(seen.shape).double()
    error = float((ours - theirs).norm() / theirs.norm())
    assert error < (1e-2 if seen.dtype == torch.bfloat16 else 1e-5), error
