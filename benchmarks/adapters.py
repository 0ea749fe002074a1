"""What do LoRA adapters cost a step on the CPU?

python -m benchmarks.adapters                          the default model in int8, one thread, random adapters of rank 16
python -m benchmarks.adapters --rank 8 --streams 1,4,8 --dtype float32 --model FOLDER

Streams of the same length run with no adapter, all with one, and with four in turn; the three take turns over the
rounds. Shown is the CPU time of a step that only decodes, and of the steps that compute the prompts: CPU time, because
other processes disturb it least. Ends with one JSON line.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.engine.adapter_files import make_adapter  # noqa: E402

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.engine import Engine  # noqa: E402
from axon.engine.load.architecture import read_architecture  # noqa: E402
from axon.engine.protocol.messages import Add  # noqa: E402
from benchmarks.measures.drive import make_prompt_ids  # noqa: E402
from benchmarks.measures.machine import load_average, machine  # noqa: E402

MODEL_DIR = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
PROMPT, ANSWER = 40, 16
KINDS = {"none": 0, "one adapter": 1, "four adapters": 4}


def run(engine: Engine, folders: list[Path], *, streams: int, name: str, vocab_size: int) -> tuple[float, float]:
    """CPU milliseconds of the prompts' steps, and of a decode step."""
    for index in range(streams):
        folder = folders[index % len(folders)] if folders else None
        add = Add(
            id=f"{name}-{index}",
            prompt_ids=make_prompt_ids(f"{name}-{index}", PROMPT, vocab_size),
            sampling=Sampling(max_tokens=ANSWER, temperature=0.0, ignore_eos=True),
            seed=0,
            adapter=folder.name if folder else "",
            adapter_folder=str(folder) if folder else "",
        )
        engine.add(add)
    prefill_s, steps_s = 0.0, list[float]()
    while engine.has_work:
        began = time.process_time()
        num_tokens = engine.step().counters.batch_tokens
        taken_s = time.process_time() - began
        if num_tokens > streams:
            prefill_s += taken_s
        elif num_tokens == streams:
            steps_s.append(taken_s)
    return 1e3 * prefill_s, 1e3 * statistics.median(steps_s)


def main() -> int:
    """Runs the rounds and prints a table and one JSON line."""
    parser = argparse.ArgumentParser(prog="benchmarks.adapters")
    parser.add_argument("--model", type=Path, default=MODEL_DIR)
    parser.add_argument("--dtype", default="int8")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--streams", default="1,4")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    config = EngineConfig(dtype=options.dtype, threads=1, kv_memory_bytes=200 << 20, speculate=False)
    vocab_size = read_architecture(options.model).vocab_size
    engine = Engine(config, options.model)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as made:
        folders = [
            make_adapter(Path(made) / str(seed), options.model, seed=seed, rank=options.rank, size=0.02)
            for seed in range(4)
        ]
        for folder in folders:  # so that all are in memory
            run(engine, [folder], streams=1, name=f"first-{folder.name}", vocab_size=vocab_size)
        for streams in map(int, options.streams.split(",")):
            found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
            for number in range(options.rounds):
                for kind, count in KINDS.items():
                    name = f"{streams}-{number}-{kind}"
                    taken = run(engine, folders[:count], streams=streams, name=name, vocab_size=vocab_size)
                    found[kind].append(taken)
            for kind, each in found.items():
                prefill_ms, decode_ms = (round(statistics.median(values), 2) for values in zip(*each, strict=True))
                rows.append({"streams": streams, "adapters": kind, "prefill_ms": prefill_ms, "decode_ms": decode_ms})
                print(f"{streams} streams, {kind}: prompts {prefill_ms} ms, decode step {decode_ms} ms")
    engine.close()
    facts = {"rank": options.rank, "dtype": options.dtype, "machine": machine(), "load": load_average()}
    print(json.dumps({"benchmark": "adapters", **facts, "rows": rows}, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
