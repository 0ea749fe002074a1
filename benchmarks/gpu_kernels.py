"""Shapes of the attention kernels on one GPU, timed against each other; what wins goes into axon.engine.cuda.tuning.

python benchmarks/gpu_kernels.py                 prints tables, and one JSON line last
python benchmarks/gpu_kernels.py --only chunks

Decodes run at batches of equal and of mixed lengths, in TB/s of KV read; chunks over prompts of 2000, in TFLOP/s. The
launches of a measure go through different layers, so that the cache does not help, and are recorded as one graph.
"""

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import torch  # noqa: E402

if not torch.cuda.is_available():
    print("gpu_kernels needs an NVIDIA GPU, and there is none")
    sys.exit()

from axon.engine.cuda import tuning  # noqa: E402
from axon.engine.cuda.memory.kv_memory import KVBlocks  # noqa: E402
from axon.engine.cuda.model import CudaLlama  # noqa: E402
from axon.engine.cuda.rows import Parts  # noqa: E402
from axon.engine.cuda.tuning import ChunkShape, DecodeShape  # noqa: E402
from axon.engine.load.architecture import Architecture  # noqa: E402
from axon.engine.load.rope import Rope  # noqa: E402
from benchmarks.engine_gpu import SHAPES  # noqa: E402
from benchmarks.measures.kernel_time import time_us  # noqa: E402
from benchmarks.measures.random_weights import RandomWeights  # noqa: E402

LAYERS = 8
BLOCK_SIZE = 64
DEVICE = torch.device("cuda", 0)
BATCHES = (1, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
DECODES = [
    DecodeShape(64, 1, 4, 2, False),
    DecodeShape(64, 1, 5, 2, False),
    DecodeShape(64, 1, 5, 4, False),
    DecodeShape(64, 1, 7, 4, False),
    DecodeShape(64, 2, 4, 2, False),
    DecodeShape(64, 2, 5, 4, False),
    DecodeShape(64, 4, 4, 2, False),
    DecodeShape(64, 4, 5, 4, False),
    DecodeShape(64, 8, 2, 4, True),
    DecodeShape(64, 8, 5, 4, True),
    DecodeShape(64, 16, 5, 4, True),
    DecodeShape(64, 1, 5, 2, False, True),
    DecodeShape(64, 2, 5, 4, False, True),
]
CHUNKS = [
    ChunkShape(128, 64, 2, 4),
    ChunkShape(128, 64, 5, 8),
    ChunkShape(128, 64, 7, 8),
    ChunkShape(64, 64, 3, 4),
    ChunkShape(64, 64, 5, 4),
    ChunkShape(64, 64, 7, 4),
]


def make_model() -> CudaLlama:
    config = SHAPES["8b"]
    shape = Architecture(
        vocab_size=1024, hidden_size=4096, intermediate_size=1024, num_layers=LAYERS, num_heads=32, num_kv_heads=8,
        head_dim=128, rms_norm_eps=1e-5, rope=Rope(theta=500000.0), tied_embedding=True, max_model_len=2304,
        eos_ids=frozenset(),
    )  # fmt: skip
    small = config | {"vocab_size": 1024, "intermediate_size": 1024}
    return CudaLlama(shape, RandomWeights(small, torch.bfloat16), DEVICE, max_model_len=2304, max_rows=512)


def make_kv(model: CudaLlama, count: int) -> KVBlocks:
    """Every sequence has blocks of its own, scattered."""
    width = 2304 // BLOCK_SIZE
    kv = KVBlocks(
        model.architecture, num_blocks=count * width, block_size=BLOCK_SIZE, num_slots=count, table_width=width,
        dtype=torch.bfloat16, device=DEVICE,
    )  # fmt: skip
    kv.tensor.normal_()
    kv.tables[:count] = torch.randperm(count * width, device=DEVICE).view(count, width).to(torch.int32)
    return kv


def time_decodes(model: CudaLlama, kv: KVBlocks, shape: DecodeShape, lengths: list[int]) -> float:
    """TB/s."""
    count = len(lengths)
    qkv = torch.randn(count, 6144, device=DEVICE).to(torch.bfloat16)
    seen = torch.empty(count, 4096, dtype=torch.bfloat16, device=DEVICE)
    positions = torch.tensor(sorted(lengths, reverse=True), dtype=torch.int32, device=DEVICE)
    slots = torch.arange(count, dtype=torch.int32, device=DEVICE)
    model._scratch.part_sums = torch.empty(count * shape.num_splits * 4096, device=DEVICE)
    model._scratch.part_logs = torch.empty(count * shape.num_splits * 32, device=DEVICE)
    tuning.decode_shape = lambda *_, **__: shape

    def compute() -> None:
        for index, layer in enumerate(model._layers):
            model._attending.decode(index, layer, Parts(qkv), positions, slots, count, seen, kv, pdl=True)

    return sum(lengths) * 4096 * LAYERS / time_us(compute) / 1e6


def time_chunks(model: CudaLlama, kv: KVBlocks, shape: ChunkShape, count: int, length: int) -> float:
    """TFLOP/s, with the keys' and values' way into their blocks."""
    qkv = torch.randn(count * length, 6144, device=DEVICE).to(torch.bfloat16)
    seen = torch.empty(count * length, 4096, dtype=torch.bfloat16, device=DEVICE)
    tiles = [
        (slot * length + first, min(shape.queries, length - first), first, slot)
        for first in range(0, length, shape.queries)
        for slot in range(count)
    ]
    inputs = {
        "positions": torch.arange(length, dtype=torch.int32, device=DEVICE).repeat(count),
        "slots": torch.arange(count, dtype=torch.int32, device=DEVICE).repeat_interleave(length),
        "tiles": torch.tensor(tiles[::-1], dtype=torch.int32, device=DEVICE),
    }
    tuning.chunk_shape = lambda *_, **__: shape

    def compute() -> None:
        for index, layer in enumerate(model._layers):
            model._attending.chunks(index, layer, Parts(qkv), inputs, 0, seen, kv)

    return 2 * length * length * 4096 * count * LAYERS / time_us(compute) / 1e6


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("decodes", "chunks"), default="")
    parser.add_argument("--compile", default="", help="compile one shape, beside others that do the same")
    options = parser.parse_args()
    model = make_model()
    if options.compile:
        compile_one(model, options.compile)
        return
    kv = make_kv(model, 256)
    kinds = {"decodes": len(DECODES), "chunks": len(CHUNKS)}
    wanted = [
        f"{kind}.{index}" for kind, count in kinds.items() for index in range(count) if options.only in ("", kind)
    ]
    processes = [subprocess.Popen([sys.executable, __file__, "--compile", each]) for each in wanted]
    for process in processes:
        process.wait()
    report: dict[str, Any] = {"benchmark": "gpu_kernels", "decodes": {}, "chunks": {}}
    print(f"{' '.join(sys.argv)} on {torch.cuda.get_device_name()}")
    if options.only != "chunks":
        report["decodes"] = measure_decodes(model, kv)
    if options.only != "decodes":
        report["chunks"] = measure_chunks(model, kv)
    print(json.dumps(report))


def compile_one(model: CudaLlama, name: str) -> None:
    kind, index = name.split(".")
    kv = make_kv(model, 8)
    if kind == "decodes":
        time_decodes(model, kv, DECODES[int(index)], [300] * 8)
    else:
        time_chunks(model, kv, CHUNKS[int(index)], 1, 512)


def measure_decodes(model: CudaLlama, kv: KVBlocks) -> dict[str, list[float]]:
    numbers = random.Random(0)
    report: dict[str, list[float]] = {}
    for name, (low, high) in {"equal": (576, 576), "mixed": (100, 2000)}.items():
        print(f"decodes, {name} lengths, TB/s at {BATCHES}", flush=True)
        lengths = [numbers.randint(low, high) for _ in range(256)]
        for shape in DECODES:
            figures = [round(time_decodes(model, kv, shape, lengths[:count]), 2) for count in BATCHES]
            report[f"{name} {tuple(shape)}"] = figures
            print(f"  {tuple(shape)!s:32} {figures}", flush=True)
    return report


def measure_chunks(model: CudaLlama, kv: KVBlocks) -> dict[str, list[int]]:
    report: dict[str, list[int]] = {}
    for shape in CHUNKS:
        figures = [round(time_chunks(model, kv, shape, count, length)) for count, length in ((8, 2000), (32, 512))]
        report[str(tuple(shape))] = figures
        print(f"chunks {tuple(shape)!s:24} TFLOP/s at 8 x 2000, 32 x 512: {figures}", flush=True)
    return report


if __name__ == "__main__":
    main()
