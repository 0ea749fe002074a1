"""Time to choose 16 tokens from rows of logits: the sampler in the kernels' threads beside the one in numpy. No model.

python -m benchmarks.sampler                  prints a table, and one JSON line last
python -m benchmarks.sampler --threads 1      another number of threads
python -m benchmarks.sampler --rows 1         another number of rows

The logits fall with the logarithm of their rank, as those of text do, in an order of their own in each row; the flat
ones are normal with deviation 1, so that nearly every token belongs to the nucleus. Each round times every case of both
samplers, so that a noisy moment hits one round of each; the median counts, and the least is beside it, because other
work on the machine only ever adds.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.batch import Draw, Drawn  # noqa: E402
from axon.engine.native.library import kernel_id  # noqa: E402
from axon.engine.native.sampler import NativeSampler  # noqa: E402
from axon.engine.sample.sampler import sample as sample_in_numpy  # noqa: E402
from axon.runtime.cores import usable_cores  # noqa: E402

SEED = 0
VOCAB_SIZE = 49_152
STEEPNESS = 1.5
NUM_SEEN = 500
SEEN: list[int] = np.random.default_rng(SEED).integers(0, VOCAB_SIZE, NUM_SEEN).tolist()
PROMPT = tuple(SEEN[: NUM_SEEN // 2])
CALLS_PER_ROUND = {"native": 20, "numpy": 3}
PENALTIES: dict[str, Any] = {"repetition_penalty": 1.15, "presence_penalty": 0.4, "frequency_penalty": 0.3}

CASES: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "temperature 0.8": {"temperature": 0.8},
    "top-k 40": {"temperature": 0.8, "top_k": 40},
    "top-p 0.95": {"temperature": 0.8, "top_p": 0.95},
    "min-p 0.05": {"temperature": 0.8, "min_p": 0.05},
    f"penalties over {NUM_SEEN} tokens": {"temperature": 0.8, **PENALTIES},
    "logprobs 5": {"temperature": 0.8, "logprobs": 5},
    "logprobs 5, greedy": {"temperature": 0.0, "logprobs": 5},
    "all of these": {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "logprobs": 5, **PENALTIES},
    "temperature 0.8, flat": {"temperature": 0.8},
    "top-p 0.95, flat": {"temperature": 0.8, "top_p": 0.95},
}

Rows = npt.NDArray[np.float32]
Sample = Callable[[Rows, list[Draw]], list[Drawn]]


def natural_rows(num_rows: int) -> Rows:
    random = np.random.default_rng(SEED)
    ranked = -STEEPNESS * np.log(np.arange(1, VOCAB_SIZE + 1))
    return np.stack([random.permutation(ranked) for _ in range(num_rows)]).astype(np.float32)


def flat_rows(num_rows: int) -> Rows:
    return np.random.default_rng(SEED).standard_normal((num_rows, VOCAB_SIZE)).astype(np.float32)


def make_draws(num_rows: int, options: dict[str, Any], step: int) -> list[Draw]:
    """The draws of one position; half of what a penalty counts is prompt, half is output, which grows by the step."""
    sampling = Sampling(max_tokens=1, **options)
    output = (*SEEN[NUM_SEEN // 2 :], *range(step))
    return [
        Draw(
            sampling=sampling,
            seed=row,
            choice=0,
            position=len(output),
            prompt_ids=PROMPT if sampling.penalises_prompt else (),
            output_ids=output if sampling.penalises_output else (),
        )
        for row in range(num_rows)
    ]


def time_ms(sample: Sample, rows: Rows, options: dict[str, Any], num_calls: int) -> list[float]:
    times = []
    for step in range(num_calls):
        draws = make_draws(len(rows), options, step)
        started = time.perf_counter()
        sample(rows, draws)
        times.append((time.perf_counter() - started) * 1000)
    return times


def measure(samplers: dict[str, Sample], num_rows: int, num_rounds: int) -> dict[str, dict[str, list[float]]]:
    """Milliseconds by case and sampler."""
    natural, flat = natural_rows(num_rows), flat_rows(num_rows)
    times: dict[str, dict[str, list[float]]] = {case: {name: [] for name in samplers} for case in CASES}
    for _ in range(num_rounds):
        for case, options in CASES.items():
            rows = flat if case.endswith("flat") else natural
            for name, sample in samplers.items():
                times[case][name] += time_ms(sample, rows, options, CALLS_PER_ROUND[name])
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    print(
        f"{' '.join(sys.argv)}\n{platform.machine()}, {usable_cores()} cores, {options.threads} threads, {kernel_id()}"
    )
    native = NativeSampler(VOCAB_SIZE, threads=options.threads)
    samplers: dict[str, Sample] = {"native": native.sample, "numpy": sample_in_numpy}
    times = measure(samplers, options.rows, options.rounds)
    print(
        f"load {load_before:.1f} before, {os.getloadavg()[0]:.1f} after; "
        f"ms for {options.rows} rows of {VOCAB_SIZE:,}, median (least)"
    )
    for case, by_sampler in times.items():
        cells = [f"{name} {median(values):7.2f} ({min(values):.2f})" for name, values in by_sampler.items()]
        print(f"{case:28}  " + "   ".join(cells))
    figures = {
        case: {
            name: {"median_ms": round(median(values), 3), "least_ms": round(min(values), 3)}
            for name, values in by_sampler.items()
        }
        for case, by_sampler in times.items()
    }
    print(
        json.dumps(
            {
                "benchmark": "sampler",
                "kernel": kernel_id(),
                "rows": options.rows,
                "vocab_size": VOCAB_SIZE,
                "threads": options.threads,
                "load_before": round(load_before, 2),
                "cases": figures,
            }
        )
    )


if __name__ == "__main__":
    main()
