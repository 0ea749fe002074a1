"""Start to first token on one GPU: cold, from a spare process, and vLLM beside it. Random weights in host memory.

python benchmarks/cold_start_gpu.py                      the 8B shape; one JSON line last
python benchmarks/cold_start_gpu.py --vllm /tmp/vl       also vLLM, installed in that folder for --vllm-python
python benchmarks/cold_start_gpu.py --save FOLDER        also keeps the JSON there, written anew after each row
python benchmarks/cold_start_gpu.py --smoke              a tiny model on the CPU: does the script run?

The weights are written to /dev/shm first, so that no disk is measured. Then, each in processes of its own: a start with
no compiled kernels in their cache; starts with them; starts out of a spare process (imported, with its CUDA context);
the stages of one start; vLLM without and with its graphs, each from the start of its Python to its first token. All
answer the same prompt of 32 tokens, greedily; Axon's tokens must be the same in every start.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from axon.engine.config import EngineConfig  # noqa: E402
from benchmarks.measures.cold import Started, time_start, time_start_from_spare  # noqa: E402

NUM_TOKENS = 64
SHAPE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 128256, "rope_theta": 500000.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
    "max_position_embeddings": 4096, "hidden_act": "silu", "attention_bias": False, "dtype": "bfloat16",
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
SMOKE = SHAPE | {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 512,
}  # fmt: skip
VLLM = """
import json, os, sys, time
began = float(sys.argv[3])
os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1",
                  VLLM_LOGGING_LEVEL="WARNING", VLLM_USE_FLASHINFER_SAMPLER="0")
from vllm import LLM, SamplingParams
imported = time.time()
llm = LLM(sys.argv[1], skip_tokenizer_init=True, max_model_len=4096, gpu_memory_utilization=0.9, max_num_seqs=256,
          disable_log_stats=True, enforce_eager=sys.argv[2] == "eager")
ready = time.time()
sampling = SamplingParams(temperature=0.0, ignore_eos=True, max_tokens=1, detokenize=False)
llm.generate([dict(prompt_token_ids=list(range(100, 132)))], sampling, use_tqdm=False)
print("RESULT", json.dumps({"import_s": imported - began, "ready_s": ready - began,
                            "first_token_s": time.time() - began}), flush=True)
os._exit(0)
"""


class Report:
    """The rows so far, kept after each."""

    def __init__(self, command: str, folder: Path | None) -> None:
        self._folder = folder
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._content: dict[str, Any] = {"benchmark": "cold_start_gpu", "command": command, "date": now, "rows": []}

    def note(self, **facts: Any) -> None:
        self._content |= facts
        print(json.dumps(facts), flush=True)
        self._save()

    def add(self, name: str, figures: dict[str, Any]) -> None:
        rounded = {key: round(value, 3) if isinstance(value, float) else value for key, value in figures.items()}
        self._content["rows"].append({"start": name, **rounded})
        print(f"{name:34} {json.dumps({key: each for key, each in rounded.items() if key != 'tokens'})}", flush=True)
        self._save()

    def close(self) -> None:
        print(json.dumps(self._content), flush=True)

    def _save(self) -> None:
        if self._folder:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"cold-start-gpu-{self._content['date'][:10]}.json"
            path.write_text(json.dumps(self._content, indent=1) + "\n")


def figures(started: Started) -> dict[str, Any]:
    later = (started.last_token_s - started.first_token_s) / max(1, len(started.tokens) - 1)
    return {
        "first_token_s": started.first_token_s,
        "ready_s": started.ready_s,
        "ms_per_token_after": 1e3 * later,
        "spare_rss_mb": started.rss_bytes / 1e6,
        "tokens": list(started.tokens[:8]),
    }


def run_axon(report: Report, config: EngineConfig, folder: Path, rounds: int) -> None:
    tokens: set[tuple[int, ...]] = set()

    def one(name: str, start: Callable[..., Any]) -> None:
        started: Started = asyncio.run(start(config, folder, num_tokens=NUM_TOKENS))
        tokens.add(started.tokens)
        report.add(name, figures(started))

    one("axon, no compiled kernels", time_start)
    for _ in range(rounds):
        one("axon, cold process", time_start)
        one("axon, spare process", time_start_from_spare)
    report.note(same_tokens=len(tokens) == 1)


def run_stages(folder: Path, device: str) -> None:
    """Times the parts of one start in this process; for ``--stages``."""
    began = time.perf_counter()
    stages: dict[str, float] = {}

    def mark(name: str) -> None:
        nonlocal began
        now = time.perf_counter()
        stages[name] = stages.get(name, 0.0) + now - began
        began = now

    import torch

    mark("import torch")
    from axon.domain.sampling import Sampling
    from axon.engine import engine as engine_module
    from axon.engine.protocol.messages import Add

    mark("import axon.engine.engine")
    config = EngineConfig(
        device="cuda" if device == "cuda" else "cpu", dtype="bfloat16" if device == "cuda" else "float32"
    )
    if device == "cuda":
        from axon.engine.cuda import runner, startup
        from axon.engine.cuda.weights import upload

        mark("import axon.engine.cuda")
        square = torch.zeros(64, 64, dtype=torch.bfloat16, device="cuda")
        torch.nn.functional.linear(square, square)
        torch.cuda.synchronize()
        mark("CUDA context and cuBLAS")
        began_whole = time.perf_counter()
        _timed(startup, "CudaLlama", stages, "model: tensors handed out")
        _timed(startup, "_num_blocks", stages, "the largest step")
        _timed(startup, "_open_largest", stages, "KV blocks")
        _timed(runner.CudaRunner, "rehearse", stages, "rehearsal")
        _timed(upload.Upload, "finish", stages, "rest of the weights")
        _timed(runner.CudaRunner, "capture_largest", stages, "the largest graphs")
    else:
        began_whole = time.perf_counter()
    opened = engine_module.Engine(config, folder)
    stages["engine, whole"] = time.perf_counter() - began_whole
    began = time.perf_counter()
    sampling = Sampling(max_tokens=200, temperature=0.0, ignore_eos=True)
    opened.add(Add(id="a", prompt_ids=list(range(100, 132)), sampling=sampling, seed=0))
    while not opened.step().emitted:
        pass
    mark("first token")
    steps = []
    while opened.has_work:
        started = time.perf_counter()
        opened.step()
        steps.append(time.perf_counter() - started)
    stages["longest step with a graph recorded beside it"] = max(steps)
    stages["last step"] = steps[-2]
    count, began = 0, time.perf_counter()
    while opened.tend():
        count += 1
    mark(f"the other graphs ({count})")
    print("RESULT", json.dumps(stages), flush=True)


def _timed(owner: Any, name: str, stages: dict[str, float], label: str) -> None:
    function = getattr(owner, name)

    def run(*arguments: Any, **more: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*arguments, **more)
        finally:
            stages[label] = stages.get(label, 0.0) + time.perf_counter() - started

    setattr(owner, name, run)


def run_child(command: list[str], environment: dict[str, str], timeout_s: float) -> dict[str, Any]:
    """The result that a child prints, or why there is none."""
    try:
        done = subprocess.run(
            command, env=os.environ | environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no result after {timeout_s:g} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        return {"error": (done.stderr or done.stdout)[-1500:]}
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("RESULT "))
    return found


def run_vllm(report: Report, options: argparse.Namespace, folder: Path) -> None:
    program = folder / "vllm_start.py"
    program.write_text(VLLM)
    own = {"PYTHONPATH": str(options.vllm)}
    for mode in ("eager", *["graphs"] * options.vllm_rounds):
        command = [options.vllm_python, str(program), str(folder), mode, str(time.time())]
        report.add(f"vllm, {mode}", run_child(command, own, options.vllm_timeout_s))


def describe() -> dict[str, Any]:
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    return {"gpu": gpu, "torch": torch.__version__, "cores": os.cpu_count(), "python": sys.version.split()[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--vllm", type=Path, help="the folder in which vLLM is installed")
    parser.add_argument("--vllm-python", default="/opt/torch/.venv/bin/python3")
    parser.add_argument("--vllm-rounds", type=int, default=2, help="starts with graphs: the first one compiles")
    parser.add_argument("--vllm-timeout-s", type=float, default=180.0)
    parser.add_argument("--stages", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cuda", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stages:
        run_stages(options.stages, options.device)
        return
    device = "cpu" if options.smoke else "cuda"
    room = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() and not options.smoke else None))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    os.environ["TRITON_CACHE_DIR"] = str(room / "triton")
    report = Report(" ".join(["python", *sys.argv]), options.save)
    try:
        from benchmarks.measures.random_model import write_random_model

        began = time.perf_counter()
        folder = room / "model"
        write_random_model(folder, SMOKE if options.smoke else SHAPE, device)
        report.note(machine=describe(), written_s=round(time.perf_counter() - began, 1))
        dtype: Any = "float32" if options.smoke else "bfloat16"
        config = EngineConfig(device=device, dtype=dtype, max_model_len=4096)  # type: ignore[arg-type]
        run_axon(report, config, folder, options.rounds)
        stages = [sys.executable, __file__, "--stages", str(folder), "--device", device]
        report.add("axon, stages of a cold process", run_child(stages, {}, 120))
        if options.vllm:
            run_vllm(report, options, folder)
    finally:
        shutil.rmtree(room, ignore_errors=True)
    report.close()


if __name__ == "__main__":
    main()
