"""Products with weights in four bits on one GPU: shapes of the kernel against each other, and against unpacking first.

python benchmarks/four_bit_kernels.py                 prints tables, and one JSON line last; what wins is in tuning
python benchmarks/four_bit_kernels.py --model 70b --smoke     the shapes of the tables alone

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
    print("four_bit_kernels needs an NVIDIA GPU, and there is none")
    sys.exit()

from axon.engine.cuda.products.packed_products import PackedProducts  # noqa: E402
from axon.engine.cuda.tuning import FewRows, few_packed, fit_packed  # noqa: E402
from axon.engine.cuda.weights.packed import Packed  # noqa: E402
from benchmarks.measures.kernel_time import time_us  # noqa: E402

DEVICE = torch.device("cuda", 0)
GROUP = 128
L2_BYTES = 50 << 20
SHAPES = {
    "8b": {"qkv": (6144, 4096), "output": (4096, 4096), "gate_up": (28672, 4096), "down": (4096, 14336)},
    "70b": {"qkv": (10240, 8192), "output": (8192, 8192), "gate_up": (57344, 8192), "down": (8192, 28672)},
}
"""Outputs and inputs of a layer's products."""
CANDIDATES = {
    16: [
        *(FewRows(16, 64, 128, parts, stages, 4) for parts in (1, 2, 4) for stages in (3, 4)),
        *(FewRows(16, 64, 64, parts, 6, 4) for parts in (1, 2, 4)),
        FewRows(16, 128, 64, 1, 4, 4),
        FewRows(16, 128, 64, 2, 4, 8),
        FewRows(16, 128, 128, 1, 3, 8),
    ],
    64: [
        *(FewRows(64, 64, 64, parts, 3, 4) for parts in (1, 2, 4)),
        *(FewRows(64, 128, 64, parts, 3, 8) for parts in (1, 2)),
        FewRows(64, 128, 32, 1, 4, 4),
    ],
    256: [
        *(FewRows(128, 128, 32, parts, 4, 8) for parts in (1, 2)),
        FewRows(128, 64, 32, 1, 4, 4),
        FewRows(256, 64, 32, 1, 3, 8),
        FewRows(64, 128, 32, 1, 4, 4),
    ],
}
MANY = (1, 8, 16, 32, 64, 128, 256, 384, 512, 2048)


class Bench:
    """The products of one model's layer, with weights in several copies."""

    def __init__(self, model: str, *, small: bool = False) -> None:
        self.shapes = SHAPES[model]
        self.products = PackedProducts(torch.bfloat16, pdl=True)
        self.weights = {name: self._copies(*shape, small=small) for name, shape in self.shapes.items()}

    def _copies(self, outputs: int, inputs: int, *, small: bool) -> list[Packed]:
        count = 1 if small else max(2, 4 * L2_BYTES // (outputs * inputs // 2))
        made = []
        for _ in range(count):
            numbers = torch.randint(-(2**15), 2**15, (outputs, inputs // 4), dtype=torch.int16, device=DEVICE)
            scale, zero = torch.tensor(0.01).half().view(torch.int16), torch.tensor(136.0).bfloat16().view(torch.int16)
            step = int(zero) << 16 | int(scale)
            steps = torch.full((inputs // GROUP, outputs), step, dtype=torch.int32, device=DEVICE)
            made.append(Packed(numbers, steps, GROUP, torch.float16))
        return made

    def few(self, name: str, count: int, shape: FewRows) -> Callable[[], None]:
        """A run of products that unpack on the way."""
        outputs, inputs = self.shapes[name]
        shape = fit_packed(shape, inputs, GROUP)
        x = torch.randn(count, inputs, device=DEVICE).to(torch.bfloat16)
        dtype = torch.float32 if shape.num_parts > 1 else torch.bfloat16
        out = torch.empty(shape.num_parts, count, outputs, dtype=dtype, device=DEVICE)

        def compute() -> None:
            for weight in self.weights[name]:
                self.products.few_rows(x, weight, out, shape)

        return compute

    def unpacked(self, name: str, count: int) -> Callable[[], None]:
        """A run of products by cuBLAS, each with its weights unpacked before."""
        x = torch.randn(count, self.shapes[name][1], device=DEVICE).to(torch.bfloat16)

        def compute() -> None:
            for weight in self.weights[name]:
                torch.nn.functional.linear(x, self.products.unpacked(weight))

        return compute


def candidates(bench: Bench, *, smoke: bool) -> Iterator[tuple[str, Callable[[], Callable[[], None]]]]:
    """Every shape for every product, by a name; with ``smoke`` those of the tables."""
    for name, (_, inputs) in bench.shapes.items():
        for count, shapes in CANDIDATES.items():
            own = few_packed(name, count, inputs, GROUP)
            for shape in [own] if smoke and own else dict.fromkeys([*([own] if own else []), *shapes]):
                yield f"{name} {count} {tuple(shape)}", partial(bench.few, name, count, shape)


@torch.inference_mode()
def compile_some(options: argparse.Namespace, of: int) -> None:
    """Compiles every ``of``-th kernel, beside other processes that do the rest."""
    bench = Bench(options.model, small=True)
    for index, (name, make) in enumerate(candidates(bench, smoke=options.smoke)):
        if index % of == options.part:
            attempt(name, partial(run, make))


def run(make: Callable[[], Callable[[], None]]) -> None:
    make()()


def timed(make: Callable[[], Callable[[], None]], copies: int) -> float:
    return time_us(make(), copies)


def compare(bench: Bench, name: str) -> dict[str, Any]:
    """Microseconds of a product with its own shape, and unpacked first, by number of rows."""
    inputs, copies = bench.shapes[name][1], len(bench.weights[name])
    few = []
    for count in MANY:
        shape = few_packed(name, count, inputs, GROUP)
        few.append(shape and attempt(name, partial(timed, partial(bench.few, name, count, shape), copies)))
    whole = [attempt(name, partial(timed, partial(bench.unpacked, name, count), copies)) for count in MANY]
    shown = [[round(each, 1) if each else None for each in times] for times in (few, whole)]
    print(f"  {name}, us at {MANY} rows: on the way {shown[0]}\n  unpacked first {shown[1]}", flush=True)
    return {"rows": MANY, "few": shown[0], "unpacked": shown[1]}


def attempt(name: str, run: Callable[[], Any]) -> Any:
    """What a run gives; None where it fails, which is told: the others are still worth knowing."""
    try:
        made = run()
        torch.cuda.synchronize()
    except Exception as error:
        print(f"{name}: {type(error).__name__} {str(error)[:300]}", flush=True)
        return None
    return made


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=list(SHAPES), default="8b")
    parser.add_argument("--smoke", action="store_true", help="only the shapes that products have now")
    parser.add_argument("--part", type=int, default=-1, help="compile a part, beside others that do the rest")
    options = parser.parse_args()
    of = max(1, min(14, (os.cpu_count() or 2) - 2))
    if options.part >= 0:
        compile_some(options, of)
        return
    print(f"{' '.join(sys.argv)} on {torch.cuda.get_device_name()}", flush=True)
    if not options.smoke:
        command = [sys.executable, __file__, "--model", options.model, "--part"]
        for process in [subprocess.Popen([*command, str(part)]) for part in range(of)]:
            process.wait()
    bench = Bench(options.model)
    report: dict[str, Any] = {"benchmark": "four_bit_kernels", "model": options.model}
    report["kernels"] = measure(bench, smoke=options.smoke)
    report["unpacked"] = {name: compare(bench, name) for name in bench.shapes}
    print(json.dumps(report))


def measure(bench: Bench, *, smoke: bool) -> dict[str, float]:
    times: dict[str, float] = {}
    for name, make in candidates(bench, smoke=smoke):
        copies = len(bench.weights[name.split()[0]])
        taken = attempt(name, partial(timed, make, copies))
        if taken is not None:
            times[name] = round(taken, 2)
    for group in dict.fromkeys(name.split("(")[0] for name in times):
        best = sorted((time, name) for name, time in times.items() if name.startswith(f"{group}("))[:4]
        print(f"{group:20}", "  ".join(f"{time:7.1f} {name[len(group) :]}" for time, name in best), flush=True)
    return times


if __name__ == "__main__":
    main()
