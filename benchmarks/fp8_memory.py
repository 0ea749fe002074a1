"""Is a GPU's memory flat over many mixed requests in fp8? Random weights of 0.6B's shape, no server around it.

python benchmarks/fp8_memory.py                 2,000 requests; prints the memory after each quarter, one JSON line last
"""

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import torch  # noqa: E402

from benchmarks.engine_gpu import NO_SLO_MS, SHAPES, drive, make_adds, open_engine, versions  # noqa: E402

MAX_GROWTH_BYTES = 16 << 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--kv-dtype", choices=["auto", "fp8"], default="fp8")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("fp8_memory needs an NVIDIA GPU, and there is none")
        return 0
    engine = open_engine("0.6b", dtype="fp8", kv_dtype=options.kv_dtype, itl_slo_ms=NO_SLO_MS, max_batch_tokens=8192)
    while engine.tend():
        pass
    numbers = random.Random(0)
    used: list[int] = []
    for quarter in range(4):
        lengths = [(numbers.randint(1, 1024), numbers.randint(1, 256)) for _ in range(options.requests // 4)]
        drive(engine, make_adds(lengths, SHAPES["0.6b"]["vocab_size"], 1000 + quarter))
        free, total = torch.cuda.mem_get_info()
        used.append(total - free)
        print(f"after {(quarter + 1) * len(lengths)} requests: {used[-1] / 2**20:,.0f} MiB", flush=True)
    report: dict[str, Any] = {
        "benchmark": "fp8_memory", "command": " ".join(["python", *sys.argv]), "versions": versions(),
        "kernel": engine.ready().kernel, "requests": options.requests, "used_bytes": used,
    }  # fmt: skip
    print(json.dumps(report))
    return int(used[-1] - used[0] > MAX_GROWTH_BYTES)


if __name__ == "__main__":
    sys.exit(main())
