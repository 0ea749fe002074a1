"""Shapes of the expert kernels against each other, for Qwen3-30B-A3B's layer. Needs an NVIDIA GPU.

python benchmarks/expert_kernels.py

Microseconds of each product in a CUDA graph, over layers with weights of their own so that the cache does not help, and
of the bytes of the chosen experts a second; one JSON line last.
"""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import torch  # noqa: E402

from axon.engine.cuda import tuning  # noqa: E402
from axon.engine.cuda.experts.experts import Mixture  # noqa: E402
from axon.engine.cuda.rows import Rows  # noqa: E402
from axon.engine.cuda.tuning import ExpertShape, ExpertShapes  # noqa: E402
from axon.engine.load.architecture import Experts  # noqa: E402

EXPERTS = Experts(count=128, per_token=8, inner_size=768, normalises=True)
HIDDEN, NUM_LAYERS = 2048, 3
FEW = [
    ExpertShapes(ExpertShape(16, 64, 128, 3, 4), ExpertShape(16, 64, 128, 4, 4)),
    ExpertShapes(ExpertShape(16, 64, 128, 4, 4), ExpertShape(16, 64, 256, 3, 4)),
    ExpertShapes(ExpertShape(16, 64, 64, 4, 4), ExpertShape(16, 128, 64, 4, 4)),
    ExpertShapes(ExpertShape(16, 64, 256, 2, 4), ExpertShape(16, 128, 128, 3, 4)),
    ExpertShapes(ExpertShape(16, 64, 128, 3, 8), ExpertShape(16, 128, 128, 3, 8)),
]
SOME = [
    ExpertShapes(ExpertShape(32, 64, 128, 3, 4), ExpertShape(32, 64, 128, 4, 4)),
    ExpertShapes(ExpertShape(64, 64, 64, 4, 4), ExpertShape(64, 128, 64, 4, 4)),
    ExpertShapes(ExpertShape(64, 64, 128, 3, 4), ExpertShape(64, 128, 128, 3, 8)),
]
MANY = [
    ExpertShapes(ExpertShape(128, 64, 64, 4, 8), ExpertShape(128, 128, 64, 4, 8)),
    ExpertShapes(ExpertShape(128, 128, 64, 3, 8), ExpertShape(128, 128, 64, 3, 4)),
    ExpertShapes(ExpertShape(64, 128, 64, 4, 8), ExpertShape(64, 128, 64, 4, 4)),
    ExpertShapes(ExpertShape(128, 128, 64, 4, 8), ExpertShape(128, 256, 64, 3, 8)),
]
CASES = {1: FEW, 8: FEW, 64: [*FEW, *SOME], 256: [*FEW[:2], *SOME], 2048: [*SOME, *MANY], 16384: MANY}


def microseconds(compute: Any) -> float:
    """The median of a graph's replays, for each layer."""
    compute()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compute()
    times = []
    for _ in range(12):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        began.record()
        graph.replay()
        ended.record()
        torch.cuda.synchronize()
        times.append(1000 * began.elapsed_time(ended) / NUM_LAYERS)
    return float(sorted(times)[len(times) // 2])


Layers = list[tuple[torch.Tensor, Rows, Rows]]


def chosen_shapes(shapes: ExpertShapes, *_: Any, **__: Any) -> ExpertShapes:
    return shapes


def compute_all(made: Mixture, rows: torch.Tensor, layers: Layers, *, pdl: bool) -> None:
    for layer in layers:
        made.compute(rows, *layer, pdl=pdl)


def route_all(made: Mixture, rows: torch.Tensor, layers: Layers, *, pdl: bool) -> None:
    for router, _, _ in layers:
        made.sort(made.choose(rows, router, pdl=pdl)[0], 16, pdl=pdl)


@torch.inference_mode()
def main() -> None:
    if not torch.cuda.is_available():
        print("expert_kernels needs an NVIDIA GPU, and there is none")
        return
    device = torch.device("cuda", 0)

    def random(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.bfloat16, device=device).normal_(0, 0.02)

    layers = [
        (
            random(EXPERTS.count, HIDDEN),
            Rows(random(EXPERTS.count * 2 * EXPERTS.inner_size, HIDDEN)),
            Rows(random(EXPERTS.count * HIDDEN, EXPERTS.inner_size)),
        )
        for _ in range(NUM_LAYERS)
    ]
    made, usual = Mixture(EXPERTS, torch.bfloat16, device, pdl=True), tuning.expert_shapes
    results: list[dict[str, Any]] = []
    for num_rows, cases in CASES.items():
        rows = torch.randn(num_rows, HIDDEN, device=device).to(torch.bfloat16)
        pdl = num_rows <= 256
        num_used = len(set(made.choose(rows, layers[0][0], pdl=False)[0].flatten().tolist()))
        for shapes in cases:
            tuning.expert_shapes = partial(chosen_shapes, shapes)
            try:
                taken = microseconds(partial(compute_all, made, rows, layers, pdl=pdl))
            except Exception as error:
                print(f"{num_rows:6} rows {shapes}: {type(error).__name__} {str(error)[:200]}", flush=True)
                continue
            read = num_used * 3 * EXPERTS.inner_size * HIDDEN * 2 / taken / 1e6
            flops = num_rows * EXPERTS.per_token * 6 * EXPERTS.inner_size * HIDDEN / taken / 1e6
            results.append({"rows": num_rows, "shapes": shapes, "us": round(taken, 1), "experts": num_used})
            print(f"{num_rows:6} rows {taken:9.1f} us {read:6.2f} TB/s {flops:6.0f} TFLOP/s  {shapes}", flush=True)
        tuning.expert_shapes = usual
        taken = microseconds(partial(route_all, made, rows, layers, pdl=pdl))
        print(f"{num_rows:6} rows {taken:9.1f} us to route and sort", flush=True)
        results.append({"rows": num_rows, "route_us": round(taken, 1)})
    print(json.dumps({"benchmark": "expert_kernels", "rows": results}))


if __name__ == "__main__":
    main()
