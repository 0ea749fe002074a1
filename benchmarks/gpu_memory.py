"""Is the memory of an engine on a GPU flat over many mixed requests? Random weights of 0.6B's shape, no server.

python benchmarks/gpu_memory.py                      2,000 requests of each kind of engine; one JSON line last
python benchmarks/gpu_memory.py --kinds drafts tier  only these
python benchmarks/gpu_memory.py --save FOLDER        also keeps the JSON there

Kinds: ``fp8`` (weights, keys and values), ``four_bits`` (weights as GPTQ packs them), ``drafts`` (a draft model and
lookups), ``tier`` (little room on the device, copies of blocks in host memory, conversations that come back).
Requests are greedy and drawn, some with penalties, log probabilities of answers and of prompts; some repeat themselves,
some are aborted. Ends with 1 where the device or the process holds 16 or 64 MiB more after the last quarter of the
requests than after the first.
"""

import argparse
import gc
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import torch  # noqa: E402

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.engine import Engine  # noqa: E402
from axon.engine.protocol.messages import Add  # noqa: E402
from benchmarks import drafts_gpu  # noqa: E402
from benchmarks.engine_gpu import NO_SLO_MS, open_engine, versions  # noqa: E402

SHAPE = "0.6b"
MAX_GROWTH = {"device": 16 << 20, "process": 64 << 20}
_TALKS = 100
"""Conversations that come back; with answers they are about four times what the device of ``tier`` holds."""
_DEVICE_BYTES, _HOST_BYTES = 2 << 30, 16 << 30
"""Memory of ``tier`` for blocks: 18,000 tokens on the device, and 150,000 beside it."""


def opened(kind: str) -> Engine:
    if kind == "drafts":
        engine = drafts_gpu.open_engine(SHAPE, "bfloat16", draft_tokens=4)
        drafts_gpu.scale_layers(engine, 0.03)  # so that drafts are right often, and are made
        return engine
    if kind == "fp8":
        return open_engine(SHAPE, dtype="fp8", kv_dtype="fp8", itl_slo_ms=NO_SLO_MS, max_batch_tokens=8192)
    if kind == "four_bits":
        return open_engine(SHAPE, four_bits=True, itl_slo_ms=NO_SLO_MS, max_batch_tokens=8192)
    return open_engine(SHAPE, itl_slo_ms=NO_SLO_MS, kv_memory_bytes=_DEVICE_BYTES, kv_host_bytes=_HOST_BYTES)


def talk(number: int) -> list[int]:
    """The text of a conversation; a third of them repeat themselves."""
    numbers = random.Random(number)
    ids = numbers.choices(range(10, 10000), k=24 if number % 3 == 0 else 1024)
    return (ids * 43)[:1024]


def requests(count: int, first: int) -> Iterator[tuple[Add, int]]:
    """Mixed requests, and after how many tokens each is aborted."""
    for index in range(first, first + count):
        numbers = random.Random(index)
        sampling = Sampling(
            max_tokens=numbers.randint(1, 256),
            temperature=0.0 if index % 4 == 0 else 0.6,
            top_p=0.9 if index % 5 == 0 else 1.0,
            frequency_penalty=0.3 if index % 6 == 0 else 0.0,
            logprobs=5 if index % 7 == 0 else None,
            prompt_logprobs=index % 77 == 0,
            ignore_eos=True,
        )
        ids = talk(numbers.randrange(_TALKS))[: numbers.randint(1, 1024)]
        add = Add(id=str(index), prompt_ids=ids, sampling=sampling, seed=index, session=f"talk {ids[0]}")
        yield add, min(sampling.max_tokens, 32) if index % 13 == 0 else sampling.max_tokens


def drive(engine: Engine, count: int, first: int) -> None:
    """A batch of requests, each to its last token or its abort."""
    due: dict[str, int] = {}
    for add, num_tokens in requests(count, first):
        due[add.id] = num_tokens
        engine.add(add)
    while engine.has_work:
        output = engine.step()
        assert not output.refused, output.refused
        for emitted in output.emitted:
            if emitted.id not in due:  # aborted while its step ran
                continue
            due[emitted.id] -= 1
            if due[emitted.id] == 0:
                del due[emitted.id]
                if emitted.finish is None:
                    engine.abort([emitted.id])
    assert not due, f"{len(due)} requests did not get their tokens"
    engine.check()


def used() -> dict[str, int]:
    """Bytes that are taken on the device, and by this process."""
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return {"device": total - free, "process": resident}


def measure(kind: str, count: int) -> dict[str, Any]:
    """The memory after each quarter, and what shows that the engine did what it is measured for."""
    started = time.perf_counter()
    engine = opened(kind)
    try:
        while engine.tend():  # records the graphs that would follow between steps
            pass
        drive(engine, count // 8, first=count)  # warms up: what is compiled or recorded when first needed
        quarters = []
        for quarter in range(4):
            drive(engine, count // 4, first=quarter * count // 4)
            gc.collect()
            quarters.append(used())
            shown = ", ".join(f"{where} {amount / 2**20:,.0f} MiB" for where, amount in quarters[-1].items())
            print(f"{kind}: after {(quarter + 1) * count // 4} requests: {shown}", flush=True)
        counters, shelf = engine.step().counters, engine._scheduler.shelf
        return {
            "kind": kind,
            "kernel": engine.ready().kernel,
            "requests": count,
            "used": quarters,
            "growth": {where: quarters[-1][where] - quarters[0][where] for where in MAX_GROWTH},
            "drafted": counters.drafted + counters.model_drafted,
            "loaded_tokens": shelf.counters().loaded_tokens if shelf else 0,
            "seconds": round(time.perf_counter() - started, 1),
        }
    finally:
        engine.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = ["fp8", "four_bits", "drafts", "tier"]
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("gpu_memory needs an NVIDIA GPU, and there is none")
        return 0
    now = datetime.now(UTC).isoformat(timespec="seconds")
    report: dict[str, Any] = {
        "benchmark": "gpu_memory", "command": " ".join(["python", *sys.argv]), "date": now, "versions": versions(),
        "shape": SHAPE, "rows": [],
    }  # fmt: skip
    for kind in options.kinds:
        report["rows"].append(measure(kind, options.requests))
        gc.collect()
        torch.cuda.empty_cache()
        if options.save:
            options.save.mkdir(parents=True, exist_ok=True)
            (options.save / f"gpu-memory-{now[:10]}.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))
    return int(any(row["growth"][where] > most for row in report["rows"] for where, most in MAX_GROWTH.items()))


if __name__ == "__main__":
    sys.exit(main())
