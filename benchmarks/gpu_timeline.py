"""Where a step's time goes on one GPU: each part's time, what it reads and computes, and how near the ceiling that is.

python benchmarks/gpu_timeline.py                      one stream of 8B and the mixed workload; one JSON line last
python benchmarks/gpu_timeline.py --shape 0.6b --save FOLDER

The ceilings are measured first, on the same card: a large read, and a large product in bfloat16. A run is then driven
twice, once with a clock around each part of the host's work and once under torch's profiler. What a part reads and
computes is counted from the batches: products read all weights once a step, decodes read the KV behind each row,
prompt chunks compute each token against those before it. Kernels overlap at their ends, so that parts add up to more
than the time in which the device is busy, which is the union of all of them.
"""

import argparse
import gc
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import torch  # noqa: E402

from axon.engine.batch import Batch  # noqa: E402
from benchmarks.engine_gpu import ROWS, SHAPES, drive, make_adds, open_engine, timed_host, versions  # noqa: E402

PARTS = {
    "decode_attention": "decode attention",
    "chunk_attention": "chunk attention",
    "rope_write": "chunk attention",
    "one_row": "products",
    "few_rows": "products",
    "gemm": "products",
    "nvjet": "products",
    "cutlass": "products",
    "splitK": "products",
    "sum_sections": "draws",
    "draw": "draws",
    "add_norm": "norms and gates",
    "embed_norm": "norms and gates",
    "gate": "norms and gates",
    "Memcpy": "copies",
    "Memset": "copies",
}
ITEMSIZE = 2


@dataclass(slots=True)
class Work:
    """What the batches of a run asked for."""

    num_steps: int = 0
    num_decode_steps: int = 0
    num_tokens: int = 0
    num_drawn: int = 0
    num_seen_by_decodes: int = 0
    """Tokens of KV that decodes look at."""
    num_seen_by_chunks: int = 0
    """Pairs of a prompt's token and one before it, or itself."""

    def add(self, batch: Batch) -> None:
        """Counts a batch."""
        self.num_steps += 1
        self.num_tokens += batch.num_tokens
        self.num_drawn += len(batch.draws)
        self.num_decode_steps += all(len(span.token_ids) == 1 for span in batch.spans)
        for span in batch.spans:
            if len(span.token_ids) == 1:
                self.num_seen_by_decodes += span.end
            else:
                self.num_seen_by_chunks += (span.first + 1 + span.end) * len(span.token_ids) // 2


def amounts(work: Work, shape: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Bytes read and operations done by each part."""
    hidden, inner, dim = shape["hidden_size"], shape["intermediate_size"], shape["head_dim"]
    heads, kv_heads, layers = shape["num_attention_heads"], shape["num_key_value_heads"], shape["num_hidden_layers"]
    layer = hidden * ((2 * heads + 2 * kv_heads) * dim + 3 * inner) * layers
    head = hidden * shape["vocab_size"]
    kv_bytes = 2 * layers * kv_heads * dim * ITEMSIZE
    flops_of_pair = 4 * layers * heads * dim
    return {
        "products": (
            (layer + head) * ITEMSIZE * work.num_steps,
            2.0 * (layer * work.num_tokens + head * work.num_drawn),
        ),
        "decode attention": (kv_bytes * work.num_seen_by_decodes, flops_of_pair * work.num_seen_by_decodes),
        "chunk attention": (0.0, flops_of_pair * work.num_seen_by_chunks),
        "draws": (2.0 * ITEMSIZE * shape["vocab_size"] * work.num_drawn, 0.0),
    }


def ceilings() -> dict[str, float]:
    """TB/s of reading and TFLOP/s of a product, each the median of ten."""
    data = torch.ones(1 << 32, dtype=torch.uint8, device="cuda").view(torch.int64)
    left, right = (torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    read_s, product_s = _seconds(lambda: data.sum()), _seconds(lambda: left @ right)
    return {"read_tb_s": data.nbytes / read_s / 1e12, "tflops": 2 * 8192**3 / product_s / 1e12}


def _seconds(work: Callable[[], Any]) -> float:
    times: list[float] = []
    for _ in range(13):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return sorted(times[3:])[5]


@contextmanager
def counted(engine: Any) -> Iterator[Work]:
    """Counts the batches of what runs meanwhile."""
    work, schedule = Work(), engine._scheduler.schedule

    def count(now: float) -> Batch:
        batch: Batch = schedule(now)
        if batch.spans:
            work.add(batch)
        return batch

    engine._scheduler.schedule = count
    try:
        yield work
    finally:
        del engine._scheduler.schedule


def timeline(engine: Any, lengths: list[tuple[int, int]], shape: str, seed: int) -> dict[str, Any]:
    """A run's time by part, on the host and on the device."""
    vocab_size = SHAPES[shape]["vocab_size"]
    drive(engine, make_adds(lengths, vocab_size, seed))
    with timed_host(engine) as times:
        elapsed, _ = drive(engine, make_adds(lengths, vocab_size, seed + 1))
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with counted(engine) as work, torch.profiler.profile(activities=activities) as profiled:
        profiled_s, _ = drive(engine, make_adds(lengths, vocab_size, seed + 2))
        torch.cuda.synchronize()
    device: Counter[str] = Counter()
    for event in profiled.key_averages():
        part = next((part for word, part in PARTS.items() if word in event.key), "other")
        device[part] += event.device_time_total / 1e6
    done = amounts(work, SHAPES[shape])
    host = {name: sum(each) for name, each in times.items()}
    return {
        "elapsed_s": elapsed,
        "profiled_s": profiled_s,
        "busy_s": busy_s(profiled),
        "num_steps": work.num_steps,
        "num_decode_steps": work.num_decode_steps,
        "num_tokens": work.num_tokens,
        "host_s": host,
        "device": {
            part: {"s": seconds, "bytes": done.get(part, (0, 0))[0], "flops": done.get(part, (0, 0))[1]}
            for part, seconds in device.most_common()
        },
    }


def busy_s(profiled: Any) -> float | None:
    """How long anything ran at all; None where the profiler does not tell when."""
    try:
        events = [
            (event.start_ns(), event.start_ns() + event.duration_ns())
            for event in profiled.profiler.kineto_results.events()
            if "CUDA" in str(event.device_type())
        ]
    except AttributeError:
        return None
    total, until = 0, 0
    for start, end in sorted(events):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total / 1e9


def show(name: str, made: dict[str, Any], ceiling: dict[str, float]) -> None:
    steps = made["num_steps"]
    print(
        f"\n{name}: {made['elapsed_s']:.3f} s (profiled {made['profiled_s']:.3f}, busy {made['busy_s'] or 0:.3f}), "
        f"{steps} steps, {made['num_decode_steps']} of decodes alone; ms a step"
    )
    for part, seconds in made["host_s"].items():
        print(f"  host    {part:18}{1e3 * seconds / steps:9.3f}")
    for part, each in made["device"].items():
        line = f"  device  {part:18}{1e3 * each['s'] / steps:9.3f}"
        if each["bytes"]:
            rate = each["bytes"] / each["s"] / 1e12
            line += f"{rate:9.2f} TB/s {rate / ceiling['read_tb_s']:5.0%}"
        if each["flops"]:
            rate = each["flops"] / each["s"] / 1e12
            line += f"{rate:9.0f} TFLOP/s {rate / ceiling['tflops']:5.0%}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=list(SHAPES), default="8b")
    parser.add_argument("--row", action="append", help="rows whose name begins so; by default 1 and mixed")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("gpu_timeline needs an NVIDIA GPU, and there is none")
        return
    now = datetime.now(UTC)
    command = " ".join(["python", *sys.argv])
    print(f"{command}\n{versions()}", flush=True)
    ceiling = ceilings()
    torch.cuda.empty_cache()
    print(f"ceilings: reads {ceiling['read_tb_s']:.2f} TB/s, products {ceiling['tflops']:.0f} TFLOP/s", flush=True)
    engine = open_engine(options.shape)
    gc.collect()
    gc.freeze()
    report: dict[str, Any] = {
        "benchmark": "gpu_timeline", "command": command, "date": now.isoformat(timespec="seconds"),
        "versions": versions(), "ceilings": ceiling, "timelines": {},
    }  # fmt: skip
    for index, row in enumerate(ROWS):
        if any(row.name.startswith(word) for word in options.row or ["1 ", "mixed"]):
            made = timeline(engine, row.lengths, options.shape, 1000 * (index + 1))
            report["timelines"][f"{options.shape}: {row.name}"] = made
            show(f"{options.shape}: {row.name}", made, ceiling)
            if options.save:
                options.save.mkdir(parents=True, exist_ok=True)
                path = options.save / f"gpu-timeline-{options.shape}-{now.date()}.json"
                path.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
