"""The attention kernels against plain PyTorch: decodes at many lengths, chunks and short runs behind cached
tokens. Imports Triton."""

from pathlib import Path
from typing import Any

import torch

from axon.engine.cuda import tuning
from axon.engine.cuda.memory.kv_memory import KVBlocks
from axon.engine.cuda.model import CudaLlama
from axon.engine.cuda.reference import attend
from axon.engine.cuda.rows import Parts
from axon.engine.load.architecture import read_architecture
from axon.engine.load.arranged import arranged
from axon.engine.load.weights import Weights


@torch.inference_mode()
def compare(folder: Path, device: torch.device, dtype: torch.dtype, block_size: int) -> None:
    """Asserts that what the kernels see is what the plain way sees."""
    torch.manual_seed(block_size)
    architecture = read_architecture(folder)
    with Weights(folder, dtype) as weights:
        named: Any = arranged(weights, architecture)
        model = CudaLlama(architecture, named, device, max_model_len=512, max_rows=40)
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
    for layer in (0, 1):  # of gpt-oss, one with a window and one without
        compare_decodes(model, kv, layer)
        compare_chunks(model, kv, layer)
        compare_runs(model, kv, layer)


def compare_decodes(model: CudaLlama, kv: KVBlocks, index: int) -> None:
    positions = torch.tensor([0, 1, kv.block_size - 1, kv.block_size, 200, 333], dtype=torch.int32)
    slots = torch.tensor([3, 0, 5, 1, 2, 4], dtype=torch.int32)
    qkv = make_rows(model, len(slots))
    seen = torch.full((len(slots), query_width(model)), torch.nan, dtype=model.dtype, device=model.device)
    positions_there, slots_there = positions.to(model.device), slots.to(model.device)
    layer, count = model._layers[index], len(slots)
    model._attending.decode(index, layer, Parts(qkv), positions_there, slots_there, count, seen, kv, pdl=False)
    queries = biased_queries(model, qkv, index)
    assert_close(seen, seen_plainly(model, queries, kv, index, slots, positions))


def compare_chunks(model: CudaLlama, kv: KVBlocks, index: int) -> None:
    chunks = [(2, 0, 70), (0, 37, 150), (4, 64, 2)]  # slot, first position, length
    rows = [(slot, position) for slot, first, length in chunks for position in range(first, first + length)]
    slots, positions = torch.tensor(rows, dtype=torch.int32).T.contiguous()
    tiles, start, size = [], 0, model.queries_per_tile
    for slot, first, length in chunks:
        tiles += [(start + n, min(size, length - n), first + n, slot) for n in range(0, length, size)]
        start += length
    inputs = {"positions": positions, "slots": slots, "tiles": torch.tensor([*tiles, (0, 0, 0, 0)], dtype=torch.int32)}
    qkv = make_rows(model, len(rows))
    queries = biased_queries(model, qkv, index)
    seen = torch.full((len(rows), query_width(model)), torch.nan, dtype=model.dtype, device=model.device)
    there = {name: each.to(model.device) for name, each in inputs.items()}
    model._attending.chunks(index, model._layers[index], Parts(qkv), there, 0, seen, kv)
    assert_close(seen, seen_plainly(model, queries, kv, index, slots, positions))


def biased_queries(model: CudaLlama, qkv: torch.Tensor, index: int) -> torch.Tensor:
    """The queries [row, head, dim] before a kernel rotates them in their place."""
    queries, bias = qkv[:, : query_width(model)].clone(), model._layers[index].bias
    if bias is not None:
        queries = (queries.float() + bias[: query_width(model)].float()).to(queries.dtype)
    return queries.view(len(qkv), model.architecture.num_heads, -1)


def seen_plainly(
    model: CudaLlama, queries: torch.Tensor, kv: KVBlocks, index: int, slots: torch.Tensor, positions: torch.Tensor
) -> torch.Tensor:
    window, sinks = model.architecture.window_of(index), model._layers[index].sinks
    return attend(queries, kv.tensor, index, kv.tables, slots, positions, window=window, sinks=sinks)


def compare_runs(model: CudaLlama, kv: KVBlocks, index: int) -> None:
    """Short runs: alone, beside each other, longer than a tile of queries, and behind contexts of several splits."""
    for runs in (
        [(2, 0, 3)],
        [(0, 331, 5), (3, kv.block_size - 2, 4), (5, 7, 1), (1, 200, 11)],
        [(slot, 30 * slot + 17, 1 + slot) for slot in range(6)],
    ):
        rows = [(slot, position) for slot, first, length in runs for position in range(first, first + length)]
        slots, positions = torch.tensor(rows, dtype=torch.int32).T.contiguous()
        size = next(size for size in tuning.run_ladder() if size >= len(rows))
        tiles, start = [], 0
        for slot, first, length in runs:
            step = tuning.RUN_QUERIES
            tiles += [(start + n, min(step, length - n), first + n, slot) for n in range(0, length, step)]
            start += length
        tiles += [(0, 0, 0, 0)] * (size - len(tiles))
        spare = torch.full((size - len(rows),), 6, dtype=torch.int32)
        inputs = {
            "positions": torch.cat([positions, torch.zeros_like(spare)]),
            "slots": torch.cat([slots, spare]),
            "tiles": torch.tensor(tiles, dtype=torch.int32),
        }
        qkv = make_rows(model, size)
        queries = biased_queries(model, qkv[: len(rows)], index)
        seen = torch.full((size, query_width(model)), torch.nan, dtype=model.dtype, device=model.device)
        there = {name: each.to(model.device) for name, each in inputs.items()}
        model._attending.runs(index, model._layers[index], Parts(qkv), there, seen, kv)
        assert_close(seen[: len(rows)], seen_plainly(model, queries, kv, index, slots, positions))
        assert not model._scratch.arrivals.any()


def make_rows(model: CudaLlama, count: int) -> torch.Tensor:
    width = query_width(model) + 2 * model.architecture.num_kv_heads * model.architecture.head_dim
    return torch.randn(count, width).to(model.device, model.dtype)


def query_width(model: CudaLlama) -> int:
    return model.architecture.num_heads * model.architecture.head_dim


def assert_close(seen: torch.Tensor, expected: torch.Tensor) -> None:
    ours, theirs = seen.double(), expected.view(seen.shape).double()
    error = float((ours - theirs).norm() / theirs.norm())
    assert error < (1e-2 if seen.dtype == torch.bfloat16 else 1e-5), error
