"""Time of one engine step on this machine's cores: native int8 kernels beside the float32 runner. No server around it.

python -m benchmarks.cpu_step                     prints a table, and one JSON line last
python -m benchmarks.cpu_step --only native       without the float32 runner
python -m benchmarks.cpu_step --threads 1         another number of threads
python -m benchmarks.cpu_step --rounds 9          more rounds
python -m benchmarks.cpu_step --paths amx-int8,avx512-vnni     these instruction sets instead of the best one

Each round runs every case of every runner once, so that a noisy moment hits one round of each; the median counts, and
the least is beside it, because other work on the machine only ever adds. The float32 runner's past is left at zeros,
which it would take minutes to compute and which flatters it a little: untouched memory is read from the cache.
Before the steps, the machine's ceilings are measured: memory read, and int8 products by each instruction it has.
"""

import argparse
import json
import os
import platform
import random
import sys
import time
from dataclasses import asdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import torch  # noqa: E402

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.batch import Batch, Draw, Span  # noqa: E402
from axon.engine.load.architecture import Architecture, read_architecture  # noqa: E402
from axon.engine.load.weights import Weights  # noqa: E402
from axon.engine.native.library import kernel_id  # noqa: E402
from axon.engine.native.runner import open_runner  # noqa: E402
from axon.engine.pytorch.attention import Attention  # noqa: E402
from axon.engine.pytorch.kv_memory import KVMemory  # noqa: E402
from axon.engine.pytorch.llama import Llama  # noqa: E402
from axon.engine.pytorch.runner import ModelRunner  # noqa: E402
from axon.engine.runner import Runner  # noqa: E402
from axon.runtime.cores import usable_cores  # noqa: E402
from benchmarks import ceilings  # noqa: E402

MODEL_DIR = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
SEED = 0
BATCHES = (1, 4, 8, 16, 32)
PREFILLS = (128, 512)
KV_TOKENS = 256
BLOCK_SIZE = 16
STEPS_PER_ROUND = 5

GREEDY = Draw(sampling=Sampling(max_tokens=1, temperature=0.0), seed=0, choice=0, position=0)


def span(sequence: int, first: int, num_tokens: int) -> Span:
    """Tokens of one sequence, whose blocks are its own."""
    numbers = random.Random(SEED + sequence)
    num_blocks = (KV_TOKENS + max(PREFILLS)) // BLOCK_SIZE
    return Span(
        id=str(sequence),
        first=first,
        token_ids=tuple(numbers.randrange(1000, 40000) for _ in range(num_tokens)),
        block_ids=tuple(range(sequence * num_blocks, sequence * num_blocks + -(-(first + num_tokens) // BLOCK_SIZE))),
        draw=GREEDY,
    )


def cases() -> dict[str, Batch]:
    decodes = {f"decode {size}": [span(sequence, KV_TOKENS, 1) for sequence in range(size)] for size in BATCHES}
    prefills = {f"prefill {length}": [span(0, 0, length)] for length in PREFILLS}
    return {name: Batch(tuple(spans)) for name, spans in (decodes | prefills).items()}


@torch.inference_mode()
def open_float32(architecture: Architecture, num_blocks: int, threads: int) -> Runner:
    torch.set_num_threads(threads)
    with Weights(MODEL_DIR, torch.float32) as weights:
        model = Llama(architecture, weights)
    return ModelRunner(model, Attention(architecture, KVMemory(architecture, num_blocks, BLOCK_SIZE, torch.float32)))


def open_runners(only: str, threads: int, paths: list[str]) -> dict[str, Runner]:
    architecture = read_architecture(MODEL_DIR)
    num_blocks = max(BATCHES) * (KV_TOKENS + max(PREFILLS)) // BLOCK_SIZE
    runners: dict[str, Runner] = {}
    for path in paths if only in ("", "native") else ():
        runners[path or "native"] = open_runner(
            architecture,
            MODEL_DIR,
            num_blocks=num_blocks,
            threads=threads,
            max_model_len=2048,
            instruction_set=path,
        )
    if only in ("", "float32"):
        runners["float32"] = open_float32(architecture, num_blocks, threads)
    return runners


def time_ms(runner: Runner, batch: Batch, num_steps: int) -> list[float]:
    times = []
    for _ in range(num_steps):
        started = time.perf_counter()
        runner.run(batch)
        times.append((time.perf_counter() - started) * 1000)
    return times


def measure(runners: dict[str, Runner], num_rounds: int) -> dict[str, dict[str, list[float]]]:
    """Milliseconds by case and runner."""
    times: dict[str, dict[str, list[float]]] = {case: {name: [] for name in runners} for case in cases()}
    for name, runner in runners.items():
        for sequence in range(max(BATCHES) if name != "float32" else 0):
            runner.run(Batch((span(sequence, 0, KV_TOKENS),)))
    for _ in range(num_rounds):
        for case, batch in cases().items():
            for name, runner in runners.items():
                steps = 1 if case.startswith("prefill") or name == "float32" else STEPS_PER_ROUND
                times[case][name] += time_ms(runner, batch, steps)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("native", "float32"), default="")
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--paths", default="", help="instruction sets, with commas between them")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    print(
        f"{' '.join(sys.argv)}\n{platform.machine()}, {usable_cores()} cores, {options.threads} threads, {kernel_id()}"
    )
    limits = ceilings.measure(options.threads)
    print(limits)
    times = measure(open_runners(options.only, options.threads, options.paths.split(",")), options.rounds)
    print(f"load {load_before:.1f} before, {os.getloadavg()[0]:.1f} after; ms per step, median (least)")
    for case, by_runner in times.items():
        cells = [f"{name} {median(values):8.1f} ({min(values):.1f})" for name, values in by_runner.items()]
        print(f"{case:12}  " + "   ".join(cells))
    figures = {
        case: {
            name: {"median_ms": round(median(values), 2), "least_ms": round(min(values), 2)}
            for name, values in by_runner.items()
        }
        for case, by_runner in times.items()
    }
    print(
        json.dumps(
            {
                "benchmark": "cpu_step",
                "kernel": kernel_id(),
                "threads": options.threads,
                "ceilings": asdict(limits),
                "load_before": round(load_before, 2),
                "steps": figures,
            }
        )
    )


if __name__ == "__main__":
    main()
