"""Start to first token on this machine's cores: an engine process cold and out of a spare, and the peers beside it.

python -m benchmarks.cold_start                      the default model; a table, and one JSON line last
python -m benchmarks.cold_start --save               also keeps the JSON in benchmarks/results/
python -m benchmarks.cold_start --rounds 9           the median of more starts
python -m benchmarks.cold_start --xllamacpp FOLDER   llama.cpp as the wheel ``xllamacpp`` has it, unpacked there
python -m benchmarks.cold_start --smoke              the smallest run, with an engine that echoes; keeps nothing

The weights are in the page cache, as they are when an engine process was killed: each way starts once before it counts.
The starts of all take turns. An engine process counts from the request for one to its first token over the socket that
a worker speaks to it by; a whole server, ``axon serve`` or a peer's, from the start of its process to the first token
over HTTP. In one more the engine of ``axon serve`` is killed in the middle of a stream, and its longest pause counts.
The prompt has 32 tokens, and every engine two threads. ``cpu_s`` is the processor time of the engine's process.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from axon.engine.config import EngineConfig  # noqa: E402
from benchmarks.measures.cold import Started, time_failover, time_server, time_start, time_start_from_spare  # noqa: E402
from benchmarks.measures.figures import Figures, median, rounded, table  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402
from benchmarks.peers import engines  # noqa: E402

ROUNDS = 5
GOAL_S = 1.5
XLLAMACPP = """
import json, sys, time
began = float(sys.argv[2])
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_parallel, params.n_ctx, params.warmup = sys.argv[1], 16, 16384, False
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
server = xllamacpp.Server(params)
first = []
ask = {"prompt": list(range(100, 132)), "max_tokens": 2, "temperature": 0, "stream": True}
server.handle_completions(ask, lambda chunk: first.append(time.time()) is not None)
print("RESULT", json.dumps(first[0] - began), flush=True)
"""

Way = Callable[[], Figures]


def of_engine(start: Callable[..., Any], config: EngineConfig, folder: Path | None) -> Way:
    """A way that starts an engine process."""

    def run() -> Figures:
        started: Started = asyncio.run(start(config, folder, num_tokens=2))
        return {
            "first_token_s": started.first_token_s,
            "ready_s": started.ready_s,
            "cpu_s": started.cpu_s,
            "rss_mb": started.rss_bytes / 1e6,
        }

    return run


def of_server(engine: engines.Engine) -> Way:
    """A way that starts a whole server."""

    def run() -> Figures:
        with tempfile.TemporaryDirectory() as folder:
            return {"first_token_s": time_server(engine, Path(folder))}

    return run


def of_failover(engine: engines.Engine) -> Way:
    """A way that starts an engine in the middle of a stream, because its predecessor was killed."""

    def run() -> Figures:
        with tempfile.TemporaryDirectory() as folder:
            return {"first_token_s": time_failover(engine, Path(folder))}

    return run


def of_xllamacpp(folder: Path) -> Way:
    """A way that starts llama.cpp's server inside a Python process."""
    from axon.engine.load.convert.gguf import default_gguf

    def run() -> Figures:
        command = [sys.executable, "-c", XLLAMACPP, str(default_gguf()), str(time.time())]
        own = os.environ | {"PYTHONPATH": str(folder)}
        said = subprocess.run(command, env=own, capture_output=True, text=True, check=True, timeout=300).stdout
        line = next(line for line in said.splitlines() if line.startswith("RESULT "))
        return {"first_token_s": json.loads(line.removeprefix("RESULT "))}

    return run


def ways_of(options: argparse.Namespace) -> dict[str, Way]:
    """Each way to start, by name."""
    if options.smoke:
        echo = EngineConfig(kind="echo")
        return {
            "engine, cold process": of_engine(time_start, echo, None),
            "engine, spare process": of_engine(time_start_from_spare, echo, None),
            "axon serve": of_server(engines.axon(kind="echo")),
        }
    folder = default_model()
    config = EngineConfig(threads=engines.NUM_THREADS)
    ways = {
        "engine, cold process": of_engine(time_start, config, folder),
        "engine, spare process": of_engine(time_start_from_spare, config, folder),
        "axon serve": of_server(engines.axon()),
        "axon serve, engine killed": of_failover(engines.axon()),
    }
    for peer in engines.installed_peers(engines.read_manifest()):
        if peer.name.startswith("llama.cpp") and not peer.speculates:
            ways[peer.name] = of_server(peer)
    if options.xllamacpp:
        ways["llama.cpp (xllamacpp)"] = of_xllamacpp(options.xllamacpp)
    return ways


def default_model() -> Path:
    """The default model's folder, converted where it is not yet."""
    from axon.engine.load.convert.gguf import convert_gguf, default_gguf, is_converted

    if not is_converted(default_gguf(), engines.MODEL_DIR):
        convert_gguf(default_gguf(), engines.MODEL_DIR)
    return engines.MODEL_DIR


def run(options: argparse.Namespace) -> dict[str, list[Figures]]:
    """The figures of each way's starts; the ways take turns."""
    ways = ways_of(options)
    seen: dict[str, list[Figures]] = {name: [] for name in ways}
    for number in range(2 if options.smoke else options.rounds + 1):
        for name, way in ways.items():
            figures = way()
            if number:  # the first start packs weights and fills the page cache
                seen[name].append(figures)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--xllamacpp", type=Path)
    options = parser.parse_args()
    report = Report("cold_start", options)
    seen = run(options)
    rows = {name: median(starts) for name, starts in seen.items()}
    print(table(rows))
    report.end(
        {
            "goal_s": GOAL_S,
            "rows": rounded(rows),
            "starts_s": {name: [round(each["first_token_s"], 3) for each in starts] for name, starts in seen.items()},
        }
    )


if __name__ == "__main__":
    main()
