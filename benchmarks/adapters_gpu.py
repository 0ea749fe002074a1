"""What LoRA adapters cost on one GPU: 64 streams of 8B's shape with 32 adapters, against the same streams without.

python benchmarks/adapters_gpu.py                      ranks 8, 16 and 64; one JSON line last
python benchmarks/adapters_gpu.py --save FOLDER        also keeps the JSON there, written anew after each row

Weights and adapters are random: what their numbers are does not matter to their speed. Every adapter changes all seven
matrices of every layer and has pages of its own; no file is read. Each row runs first to load its adapters and to
record its graphs, and then for its figure (the quickest of the rounds).
"""

import argparse
import gc
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import torch  # noqa: E402

from axon.engine.cuda.adapters.adapter_pages import RANK, CudaAdapters  # noqa: E402
from axon.engine.engine import Engine  # noqa: E402
from benchmarks.engine_gpu import NO_SLO_MS, SHAPES, drive, make_adds, open_engine, versions  # noqa: E402

NUM_ADAPTERS = 32
WORKLOADS = {
    "64 x (512, 128)": [(512, 128)] * 64,
    "64 x (32, 256)": [(32, 256)] * 64,
    "1 x (128, 256)": [(128, 256)],
}
RANKS = (0, 8, 16, 64)
"""0: without adapters."""
GOAL = 0.8
"""Of the tokens/s without adapters, at rank 16, in the first workload."""


def make_random(host: CudaAdapters) -> None:
    """Has adapters made instead of read: the folder's name is the rank."""

    @cache
    def read(folder: Path) -> tuple[torch.Tensor, int]:
        numbers = torch.full((-(-int(folder.name) // RANK), host.page_size), 1e-3, dtype=host.pool.dtype)
        return numbers, numbers.nbytes

    host.read = read  # type: ignore[method-assign]


def measure(engine: Engine, lengths: list[tuple[int, int]], rank: int, num_rounds: int, seed: int) -> list[float]:
    """Seconds of each round, the first of which loads the adapters."""
    seconds = []
    for number in range(num_rounds + 1):
        adds = make_adds(lengths, SHAPES["8b"]["vocab_size"], seed + number)
        if rank:
            adds = [
                replace(add, adapter=f"{rank}-{index % NUM_ADAPTERS}", adapter_folder=str(rank))
                for index, add in enumerate(adds)
            ]
        seconds.append(drive(engine, adds)[0])
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("adapters_gpu needs an NVIDIA GPU, and there is none")
        return
    date = datetime.now(UTC).isoformat(timespec="seconds")
    command = " ".join(["python", *sys.argv])
    print(f"{command}\n{versions()}", flush=True)
    report: dict[str, Any] = {"benchmark": "adapters_gpu", "command": command, "date": date, "versions": versions()}
    report["rows"] = rows = []
    engine = open_engine("8b", itl_slo_ms=NO_SLO_MS, adapter_slots=NUM_ADAPTERS, adapter_memory_bytes=12 << 30)
    make_random(engine._adapters._host)  # type: ignore[union-attr, arg-type]
    gc.collect()
    gc.freeze()
    while engine.tend():
        pass
    for index, (name, lengths) in enumerate(WORKLOADS.items()):
        plain = 0.0
        for rank in RANKS:
            seconds = measure(engine, lengths, rank, options.rounds, 1000 * index + 100 * RANKS.index(rank) + 100)
            rate = sum(output for _, output in lengths) / min(seconds[1:])
            plain = plain or rate
            kept = round(rate / plain, 3)
            each = {"workload": name, "rank": rank, "tokens_per_s": round(rate, 1), "kept": kept}
            rows.append(each | {"seconds": [round(second, 4) for second in seconds]})
            goal = f"  goal {GOAL}" if rank == 16 and index == 0 else ""
            print(
                f"{name:18} rank {rank:2}: {rate:>8,.0f} tokens/s, {kept:.3f} of without{goal}  {seconds}", flush=True
            )
            if options.save:
                options.save.mkdir(parents=True, exist_ok=True)
                (options.save / f"adapters-gpu-{date[:10]}.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
