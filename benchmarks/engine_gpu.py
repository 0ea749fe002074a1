"""The engine on one GPU, driven as a worker drives it: add, step, outputs. Random weights, no server around it.

python benchmarks/engine_gpu.py                        every row, for both shapes; one JSON line last
python benchmarks/engine_gpu.py --shape 8b --row mixed --profile mixed
python benchmarks/engine_gpu.py --shape qwen3-30b-a3b  a mixture of experts
python benchmarks/engine_gpu.py --shape 8b --dtype fp8 --kv-dtype fp8     70b runs in fp8 and four bits alone
python benchmarks/engine_gpu.py --shape 70b --dtype w4                    weights in four bits, as GPTQ packs them
python benchmarks/engine_gpu.py --save FOLDER          also keeps the JSON there, written anew after each row
python benchmarks/engine_gpu.py --shape 0.6b --row "64 x" --sampling plain mixed penalties logprobs
python benchmarks/engine_gpu.py --itl-slo-ms 50        with prompts bounded beside streams, as a server bounds them

The peer's figures are of its throughput: it bounds no prompt for the sake of streams beside it, and neither do we
unless told to.

Each row runs on prompts of its own, first to warm up and then for its figure (the quickest of the rounds). Every
sequence must get its number of tokens, and the tokens of many sequences together must be distributed as those of each
alone.
"""

import argparse
import gc
import json
import platform
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import torch  # noqa: E402

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.engine import Engine  # noqa: E402
from axon.engine.protocol.messages import Add  # noqa: E402
from benchmarks.measures.random_weights import RandomWeights  # noqa: E402

TEMPERATURE = 0.6
SHAPES: dict[str, dict[str, Any]] = {
    "8b": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256,
        "rope_theta": 500000.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "max_position_embeddings": 2304,
    },
    "0.6b": {
        "model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
        "rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "tie_word_embeddings": True, "max_position_embeddings": 2304,
    },
}  # fmt: skip
SHAPES["70b"] = SHAPES["8b"] | {
    "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
}  # fmt: skip
SHAPES["qwen3-30b-a3b"] = SHAPES["0.6b"] | {
    "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 48,
    "num_attention_heads": 32, "num_key_value_heads": 4, "tie_word_embeddings": False, "num_experts": 128,
    "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": True,
}  # fmt: skip
NO_SLO_MS = 1e9
SAMPLINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "penalties": {"repetition_penalty": 1.1, "frequency_penalty": 0.3, "presence_penalty": 0.2},
    "logprobs": {"logprobs": 5},
    "mixed": {},
}
"""What is asked for beyond a temperature; of ``mixed`` every fourth sequence has penalties and log probabilities."""
MAX_BATCH_TOKENS = {"8b": 16384, "0.6b": 16384, "70b": 8192, "qwen3-30b-a3b": 16384}


@dataclass(frozen=True)
class Row:
    """A workload: prompt and output lengths, the peer's figure for each shape, and the limit where one is known."""

    name: str
    lengths: list[tuple[int, int]]
    peer: dict[str, float]
    limit: dict[str, float]
    goal: dict[str, float]
    counts_all: bool = False
    """Prompt tokens count as well."""


def mixed_lengths() -> list[tuple[int, int]]:
    numbers = random.Random(0)
    prompts = [numbers.randint(100, 1024) for _ in range(256)]
    return list(zip(prompts, [numbers.randint(100, 1024) for _ in range(256)], strict=True))


ROWS = [
    Row("1 x (128, 256)", [(128, 256)], {"8b": 205, "0.6b": 482, "8b fp8": 284, "70b fp8": 48},
        {"8b": 286, "70b fp8": 62}, {"8b": 255, "0.6b": 1300, "8b fp8": 370, "70b fp8": 56}),
    Row("8 x (512, 128)", [(512, 128)] * 8, {"8b": 1388, "0.6b": 3200, "8b fp8": 1934, "70b fp8": 322}, {},
        {"8b": 1600, "0.6b": 6500, "8b fp8": 2350, "70b fp8": 370}),
    Row("64 x (512, 128)", [(512, 128)] * 64, {"8b": 5102, "0.6b": 14796, "8b fp8": 7147, "70b fp8": 1128}, {},
        {"8b": 5600, "0.6b": 25000, "8b fp8": 7800, "70b fp8": 1230}),
    Row("256 x (512, 128)", [(512, 128)] * 256, {"8b": 6752, "0.6b": 22587, "8b fp8": 9502, "70b fp8": 1483}, {},
        {"8b": 7300, "0.6b": 33000, "8b fp8": 10200, "70b fp8": 1600}),
    Row("mixed 256 x (100-1024, 100-1024)", mixed_lengths(), {"8b": 10203, "0.6b": 23645, "8b fp8": 12812},
        {"8b": 13900, "0.6b": 31000}, {"8b": 10900, "0.6b": 27000, "8b fp8": 13800}),
    Row("prefill 32 x 2000", [(2000, 1)] * 32, {"8b": 42450, "0.6b": 386580, "8b fp8": 64979}, {"8b": 52700},
        {"8b": 43500, "0.6b": 440000, "8b fp8": 67000}, counts_all=True),
]  # fmt: skip
"""The peer is vLLM 0.23.0 on an H200, 2026-11-15, with the same lengths, temperature and at most 512 sequences; in fp8
2026-11-16, the better of its figures with keys and values in bfloat16 and in fp8."""


def open_engine(shape: str, *, four_bits: bool = False, **changes: Any) -> Engine:
    """An engine whose folder has a config and no weights."""
    config = SHAPES[shape]

    @contextmanager
    def open_weights(model_dir: Path, dtype: torch.dtype) -> Iterator[Any]:
        yield RandomWeights(config, dtype, four_bits=four_bits)

    budget = MAX_BATCH_TOKENS[shape]
    settings: dict[str, Any] = {
        "device": "cuda", "dtype": "bfloat16", "max_sequences": 256, "max_batch_tokens": budget,
        "max_prefill_tokens": budget,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        return Engine(EngineConfig(**settings | changes), Path(folder), open_weights)


def make_adds(lengths: list[tuple[int, int]], vocab_size: int, seed: int, sampling: str = "plain") -> list[Add]:
    numbers = random.Random(seed)

    def more(index: int) -> dict[str, Any]:
        if sampling == "mixed" and index % 4 == 0:
            return SAMPLINGS["penalties"] | SAMPLINGS["logprobs"]
        return SAMPLINGS[sampling]

    return [
        Add(
            id=f"{seed}.{index}",
            prompt_ids=numbers.choices(range(10, min(10000, vocab_size)), k=num_prompt),
            sampling=Sampling(max_tokens=num_output, temperature=TEMPERATURE, ignore_eos=True, **more(index)),
            seed=seed * 1000 + index,
        )
        for index, (num_prompt, num_output) in enumerate(lengths)
    ]


def drive(engine: Engine, adds: list[Add]) -> tuple[float, dict[str, list[int]]]:
    """Seconds from the first add to the last token, and each sequence's tokens."""
    tokens: dict[str, list[int]] = {add.id: [] for add in adds}
    num_cached = 0
    started = time.perf_counter()
    for add in adds:
        engine.add(add)
    while engine.has_work:
        for emitted in engine.step().emitted:
            tokens[emitted.id].append(emitted.token)
            num_cached += emitted.cached
    elapsed = time.perf_counter() - started
    assert num_cached == 0, "a prompt was cached: the figure would flatter"
    wrong = [add.id for add in adds if len(tokens[add.id]) != add.sampling.max_tokens]
    assert not wrong, f"{len(wrong)} sequences did not get their tokens"
    engine.check()
    return elapsed, tokens


def measure(
    engine: Engine, row: Row, shape: str, dtype: str, num_rounds: int, first_seed: int, sampling: str
) -> dict[str, Any]:
    kind = shape if dtype == "bfloat16" else f"{shape} {dtype}"
    total = sum(output + (prompt if row.counts_all else 0) for prompt, output in row.lengths)
    vocab_size = SHAPES[shape]["vocab_size"]
    seconds = [
        drive(engine, make_adds(row.lengths, vocab_size, first_seed + n, sampling))[0] for n in range(num_rounds + 1)
    ]
    axon = total / min(seconds[1:])
    return {
        "workload": f"{kind}: {row.name}",
        "sampling": sampling,
        "axon": round(axon, 1),
        "vllm": row.peer.get(kind),
        "ratio": round(axon / row.peer[kind], 3) if kind in row.peer else None,
        "limit": row.limit.get(kind),
        "goal": row.goal.get(kind),
        "seconds": [round(each, 4) for each in seconds],
    }


def distribution_gap(engine: Engine, shape: str, num_prompt: int) -> float:
    """The largest gap between the distributions of the tokens of 256 sequences together and of each alone."""
    prompt = make_adds([(num_prompt, 1)], SHAPES[shape]["vocab_size"], 7)[0].prompt_ids

    def add(index: int) -> Add:
        sampling = Sampling(max_tokens=1, temperature=TEMPERATURE, ignore_eos=True)
        return Add(id=str(index), prompt_ids=prompt, sampling=sampling, seed=index, tenant=f"d{num_prompt}.{index}")

    together = sorted(ids[0] for ids in drive(engine, [add(index) for index in range(256)])[1].values())
    alone = sorted(drive(engine, [add(index)])[1][str(index)][0] for index in range(256))
    gaps = [
        abs(sum(id <= edge for id in together) - sum(id <= edge for id in alone)) / 256 for edge in {*together, *alone}
    ]
    return max(gaps)


@contextmanager
def timed_host(engine: Engine) -> Iterator[dict[str, list[float]]]:
    """Seconds of each step's parts on the host."""
    times: dict[str, list[float]] = defaultdict(list)
    scheduler: Any = engine._scheduler
    launcher: Any = engine._launcher
    kept = scheduler.schedule, scheduler.settle, launcher.launch

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            started = time.perf_counter()
            result = function(*arguments)
            times[name].append(time.perf_counter() - started)
            return result

        return run

    def launch(batch: Any) -> Any:
        flight = timed("launch", kept[2])(batch)
        flight_land = flight.land

        class Timed:
            land = staticmethod(timed("land", flight_land))

        return Timed()

    scheduler.schedule, scheduler.settle = timed("schedule", kept[0]), timed("settle", kept[1])
    launcher.launch = launch
    try:
        yield times
    finally:
        del scheduler.schedule, scheduler.settle, launcher.launch


_KINDS = {
    "decode_attention": "attention", "chunk_attention": "attention", "rope_write": "attention", "one_row": "products",
    "few_rows": "products", "unpack": "products", "expert_": "experts", "route": "experts", "sort_pairs": "experts",
    "gemm": "products", "nvjet": "products", "cutlass": "products", "splitK": "products", "shrink": "adapters",
    "expand": "adapters",
    "sum_sections": "draws", "draw": "draws", "add_norm": "rows", "embed_norm": "rows", "gate": "rows",
    "Memcpy": "copies",
}  # fmt: skip


def profile(engine: Engine, row: Row, shape: str, seed: int) -> dict[str, Any]:
    """Where a run's time goes: milliseconds of the device by kind of kernel, and of the host by part of a step."""
    adds = make_adds(row.lengths, SHAPES[shape]["vocab_size"], seed)
    with timed_host(engine) as times:
        elapsed, _ = drive(engine, adds)
    host = {name: [round(1e3 * sum(each), 2), len(each)] for name, each in times.items()}
    adds = make_adds(row.lengths, SHAPES[shape]["vocab_size"], seed + 1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiled:
        drive(engine, adds)
        torch.cuda.synchronize()
    device: Counter[str] = Counter()
    names: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for event in profiled.key_averages():
        kind = next((kind for part, kind in _KINDS.items() if part in event.key), "other")
        device[kind] += event.device_time_total / 1e3
        names[event.key[:60]] += event.device_time_total / 1e3
        counts[event.key[:60]] += event.count
    top = {name: [round(ms, 2), counts[name]] for name, ms in names.most_common(14)}
    return {
        "elapsed_ms": round(elapsed * 1e3, 1),
        "host_ms": host,
        "device_ms": {kind: round(ms, 1) for kind, ms in device.most_common()},
        "kernels_ms": top,
    }


def versions() -> dict[str, str]:
    import triton

    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
    }


def save(report: dict[str, Any], folder: Path | None) -> None:
    """Keeps what is known so far: a run that is cut short loses no row."""
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"engine-gpu-{report['name']}-{report['date'][:10]}.json").write_text(
            json.dumps(report, indent=1) + "\n"
        )


def shown(result: dict[str, Any]) -> str:
    goal = f"goal {result['goal'] or 0:,.0f}"
    goal = "reached" if result["goal"] and result["axon"] >= result["goal"] else goal
    return (
        f"{result['workload']:42} {result['sampling']:9} axon {result['axon']:>10,.0f}  "
        f"vllm {result['vllm'] or 0:>8,.0f}  ratio {result['ratio'] or 0:.2f}  "
        f"limit {result['limit'] or 0:>8,.0f}  {goal}  {result['seconds']}"
    )


def run_shape(shape: str, options: argparse.Namespace, report: dict[str, Any]) -> None:
    started = time.perf_counter()
    four_bits = options.dtype == "w4"
    chosen = {"dtype": "bfloat16" if four_bits else options.dtype, "kv_dtype": options.kv_dtype}
    engine = open_engine(shape, four_bits=four_bits, itl_slo_ms=options.itl_slo_ms, **chosen)
    gc.collect()
    gc.freeze()
    opened_s = time.perf_counter() - started
    while engine.tend():  # records the graphs that would follow between steps
        pass
    ready = engine.ready()
    free, total = torch.cuda.mem_get_info()
    print(
        f"{shape}, {ready.kernel}: opened in {opened_s:.1f} s, {ready.num_blocks} blocks of "
        f"{ready.block_size} tokens, {(total - free) / 2**30:.1f} of {total / 2**30:.1f} GiB",
        flush=True,
    )
    for index, row in enumerate(ROWS):
        if options.row and not any(part in row.name for part in options.row):
            continue
        for number, sampling in enumerate(options.sampling):
            seed = 100 * (index + 1) + 10 * number  # no prompt is met twice
            result = measure(engine, row, shape, options.dtype, options.rounds, seed, sampling)
            report["rows"].append(result)
            print(shown(result), flush=True)
            save(report, options.save)
        if options.profile and options.profile in row.name:
            report["profiles"][result["workload"]] = made = profile(engine, row, shape, 100 * (index + 1) + 50)
            print(json.dumps(made), flush=True)
    if not options.row:
        gaps = {str(length): round(distribution_gap(engine, shape, length), 4) for length in (1, 40)}
        report["distribution_gaps"][shape] = gaps
        save(report, options.save)
        print(f"{shape}: gap between distributions together and alone, by prompt length: {gaps} (noise is below 0.14)")
        assert max(gaps.values()) < 0.144, "the tokens of a batch are distributed otherwise than those of each alone"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=list(SHAPES), default="")
    parser.add_argument("--dtype", choices=["bfloat16", "fp8", "w4"], default="bfloat16")
    parser.add_argument("--kv-dtype", choices=["auto", "fp8"], default="auto")
    parser.add_argument("--row", nargs="+", default=[], help="only rows whose name has one of these in it")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--sampling", nargs="+", choices=list(SAMPLINGS), default=["plain"])
    parser.add_argument("--profile", default="", help="says where the time goes in rows whose name has this in it")
    parser.add_argument("--itl-slo-ms", type=float, default=NO_SLO_MS, help="how long a stream may wait for a prompt")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("engine_gpu needs an NVIDIA GPU, and there is none")
        return
    now = datetime.now(UTC)
    command = " ".join(["python", *sys.argv])
    print(f"{command}\n{versions()}", flush=True)
    report: dict[str, Any] = {
        "benchmark": "engine_gpu", "name": f"{options.shape or 'all'}-{options.dtype}",
        "command": command, "date": now.isoformat(timespec="seconds"),
        "versions": versions(), "temperature": TEMPERATURE, "rows": [], "profiles": {}, "distribution_gaps": {},
    }  # fmt: skip
    for shape in [options.shape] if options.shape else ["0.6b", "8b"]:
        run_shape(shape, options, report)
        gc.unfreeze()
        gc.collect()
        torch.cuda.empty_cache()
    save(report, options.save)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
