"""Products in fp8 on one GPU: shapes of the kernels against each other, cuBLAS and bfloat16. What wins is in tuning.

python benchmarks/fp8_kernels.py                 prints tables, and one JSON line last
python benchmarks/fp8_kernels.py --model 70b

Microseconds of a product, in one recorded graph over several copies of its weights, so that the cache does not help.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import torch  # noqa: E402

if not torch.cuda.is_available():
    print("fp8_kernels needs an NVIDIA GPU, and there is none")
    sys.exit()

from axon.engine.cuda.products.products import Products  # noqa: E402
from axon.engine.cuda.rows import FP8, Rows, quantise  # noqa: E402
from axon.engine.cuda.tuning import FewRows  # noqa: E402
from benchmarks.measures.kernel_time import time_us  # noqa: E402

DEVICE = torch.device("cuda", 0)
L2_BYTES = 50 << 20
SHAPES = {
    "8b": {"qkv": (6144, 4096), "output": (4096, 4096), "gate_up": (28672, 4096), "down": (4096, 14336)},
    "70b": {"qkv": (10240, 8192), "output": (8192, 8192), "gate_up": (57344, 8192), "down": (8192, 28672)},
}
"""Outputs and inputs of a layer's products."""
FEW = {
    16: [
        *(FewRows(16, 64, 256, parts, stages, 4) for parts in (1, 2, 4) for stages in (3, 5)),
        *(FewRows(16, 128, 256, parts, 4, 4) for parts in (1, 2)),
        FewRows(16, 64, 512, 1, 3, 4),
        FewRows(16, 64, 512, 2, 3, 4),
        FewRows(16, 128, 128, 1, 6, 4),
    ],
    32: [
        *(FewRows(32, 64, 256, parts, 4, 4) for parts in (1, 2, 4)),
        *(FewRows(32, 128, 256, parts, 4, 4) for parts in (1, 2)),
        FewRows(32, 64, 512, 2, 3, 4),
    ],
    64: [
        *(FewRows(64, 64, 256, parts, 4, 4) for parts in (1, 2, 4)),
        *(FewRows(64, 128, 256, parts, 3, 4) for parts in (1, 2)),
        FewRows(64, 128, 128, 1, 5, 4),
        FewRows(64, 128, 128, 2, 5, 8),
    ],
    128: [
        *(FewRows(128, 128, 128, parts, 4, 8) for parts in (1, 2, 4)),
        FewRows(128, 64, 256, 2, 3, 4),
        FewRows(128, 128, 256, 1, 3, 8),
    ],
}
GATED = {
    16: [
        FewRows(16, 64, 256, 1, 3, 4),
        FewRows(16, 64, 256, 1, 4, 4),
        FewRows(16, 64, 128, 1, 6, 4),
        FewRows(16, 64, 512, 1, 2, 4),
    ],
    32: [FewRows(32, 64, 256, 1, 3, 4), FewRows(32, 64, 256, 1, 4, 4), FewRows(32, 64, 128, 1, 6, 4)],
    64: [FewRows(64, 64, 256, 1, 3, 4), FewRows(64, 64, 128, 1, 5, 4), FewRows(64, 64, 128, 1, 5, 8)],
    128: [FewRows(128, 64, 128, 1, 4, 4), FewRows(128, 64, 128, 1, 4, 8)],
}
ROUNDED = ("output", "down")
MANY = (1, 8, 16, 32, 64, 128, 256, 2048, 16384)


class Bench:
    """The products of one model's layer, with weights in several copies."""

    def __init__(self, model: str, *, small: bool = False) -> None:
        self.shapes = SHAPES[model]
        hidden = self.shapes["qkv"][1]
        self.products = Products(hidden, torch.bfloat16, DEVICE, eps=1e-5, pdl=True)
        self.weights = {}
        for name, (outputs, inputs) in self.shapes.items():
            copies = 1 if small else max(2, 4 * L2_BYTES // (outputs * inputs))
            self.weights[name] = [
                quantise(torch.randn(outputs, inputs, dtype=torch.bfloat16, device=DEVICE)) for _ in range(copies)
            ]

    def few(self, name: str, count: int, shape: FewRows, *, rounds: bool = False) -> Callable[[], None] | None:
        """A run of products of a few rows, which are rounded on the way or before; None if the shape does not fit."""
        outputs, inputs = self.shapes[name]
        if inputs % (shape.num_parts * shape.width):
            return None
        wide = torch.randn(count, inputs, device=DEVICE).to(torch.bfloat16)
        largest = wide.float().abs().amax(-1, keepdim=True).expand(-1, 8 if name == "output" else 1).contiguous()
        rows = Rows(wide, largest=largest) if rounds else quantise(wide)
        scales = torch.empty(count, device=DEVICE) if rounds else rows.scales
        dtype = torch.float32 if shape.num_parts > 1 else torch.bfloat16
        out = torch.empty(shape.num_parts, count, outputs, dtype=dtype, device=DEVICE)

        def compute() -> None:
            for weight in self.weights[name]:
                self.products.few_rows(rows, weight.values, out, scales, shape)

        return compute

    def gated(self, count: int, shape: FewRows) -> Callable[[], None] | None:
        """A run of products with their gate."""
        outputs, inputs = self.shapes["gate_up"]
        rows = quantise(torch.randn(count, inputs, device=DEVICE))
        empty = torch.empty(count, outputs // 2, dtype=torch.bfloat16, device=DEVICE)
        out = Rows(empty, largest=torch.zeros(count, 1, device=DEVICE))

        def compute() -> None:
            for weight in self.weights["gate_up"]:
                self.products.gated(rows, weight, out, shape)

        return compute

    def many(self, name: str, count: int, dtype: torch.dtype) -> Callable[[], None]:
        """A run of products by cuBLAS."""
        x = torch.randn(count, self.shapes[name][1], dtype=torch.bfloat16, device=DEVICE)
        rows = quantise(x) if dtype == FP8 else Rows(x)
        weights = self.weights[name]
        if dtype != FP8:
            weights = [Rows(weight.values.to(dtype)) for weight in weights]

        def compute() -> None:
            for weight in weights:
                self.products.plain(rows, weight)

        return compute


def candidates(bench: Bench) -> Iterator[tuple[str, Callable[[], Callable[[], None] | None]]]:
    """Every kernel with every shape, by a name."""
    for name in bench.shapes:
        for count, shapes in FEW.items():
            for shape in shapes:
                yield f"{name} {count} few{tuple(shape)}", partial(bench.few, name, count, shape)
                if name in ROUNDED:
                    yield f"{name} {count} rounds{tuple(shape)}", partial(bench.few, name, count, shape, rounds=True)
    for count, shapes in GATED.items():
        for shape in shapes:
            yield f"gate_up {count} gated{tuple(shape)}", partial(bench.gated, count, shape)


def compile_some(model: str, part: int, of: int) -> None:
    """Compiles every ``of``-th kernel, beside other processes that do the rest."""
    bench = Bench(model, small=True)
    for index, (name, make) in enumerate(candidates(bench)):
        if index % of == part and (compute := make()) is not None:
            try:
                compute()
                torch.cuda.synchronize()
            except Exception as error:
                print(f"{name}: {type(error).__name__} {str(error)[:200]}", flush=True)


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=list(SHAPES), default="8b")
    parser.add_argument("--part", type=int, default=-1, help="compile a part, beside others that do the rest")
    parser.add_argument("--compiled", action="store_true", help="the parts were compiled before")
    parser.add_argument("--skip-tuning", action="store_true")
    options = parser.parse_args()
    of = max(1, min(14, (os.cpu_count() or 2) - 2))
    if options.part >= 0:
        compile_some(options.model, options.part, of)
        return
    print(f"{' '.join(sys.argv)} on {torch.cuda.get_device_name()}", flush=True)
    report: dict[str, Any] = {"benchmark": "fp8_kernels", "model": options.model, "kernels": {}, "cublas": {}}
    if not options.skip_tuning and not options.compiled:
        command = [sys.executable, __file__, "--model", options.model, "--part"]
        for process in [subprocess.Popen([*command, str(part)]) for part in range(of)]:
            process.wait()
    bench = Bench(options.model)
    if not options.skip_tuning:
        report["kernels"] = measure_kernels(bench)
    report["cublas"] = measure_cublas(bench)
    print(json.dumps(report))


def measure_kernels(bench: Bench) -> dict[str, float]:
    times: dict[str, float] = {}
    for name, make in candidates(bench):
        compute = make()
        if compute is None:
            continue
        try:
            times[name] = round(time_us(compute, len(bench.weights[name.split()[0]])), 2)
        except Exception as error:
            print(f"{name}: {type(error).__name__} {str(error)[:200]}", flush=True)
    for group in dict.fromkeys(name.split("(")[0] for name in times):
        best = sorted((time, name) for name, time in times.items() if name.startswith(f"{group}("))[:4]
        print(f"{group:20}", "  ".join(f"{time:7.1f} {name[len(group) :]}" for time, name in best), flush=True)
    return times


def measure_cublas(bench: Bench) -> dict[str, list[float]]:
    figures: dict[str, list[float]] = {}
    print(f"cuBLAS, us at {MANY} rows", flush=True)
    for name in bench.shapes:
        for dtype in (FP8, torch.bfloat16):
            copies = len(bench.weights[name])
            figures[f"{name} {dtype}"] = times = [
                round(time_us(bench.many(name, count, dtype), copies), 2) for count in MANY
            ]
            print(f"  {name} {dtype}: {times}", flush=True)
    return figures


if __name__ == "__main__":
    main()
