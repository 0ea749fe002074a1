"""What gateway, session and log add to the engine driven directly, in one run on one machine.

python -m benchmarks.path                        embedded, on the real services, and as a fleet of roles; a table, and
                                                 one JSON line last
python -m benchmarks.path --places embedded      the twins only
python -m benchmarks.path --save                 also keeps the JSON in benchmarks/results/

Measures for each place. Time to first token: one request at a time, by turns to the server and to an engine of the same
settings in a process of its own; the difference of the medians and of the 99th percentiles. Tokens/s at 16 streams: the
same, as a share of the engine's own. Then the server with an engine that only echoes: read by 500 at once, tokens/s,
and tokens for each second of CPU that the process they are connected to takes; 64 requests at once, the time to their
first token; the lag of that process's event loop under both; and the CPU of a request and of a token at the pace of 16
streams, summed over all processes of the server and its services, without the engine's and the client's own time.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.protocol.messages import Add  # noqa: E402
from axon.text.tokenizer import load_tokenizer  # noqa: E402
from axon.worker.child.process import EngineProcess  # noqa: E402
from benchmarks.measures import lag  # noqa: E402
from benchmarks.measures.cpu_time import costs, cpu_by_part, read_processes, total  # noqa: E402
from benchmarks.measures.figures import Figures, median, percentile, rounded, table  # noqa: E402
from benchmarks.measures.load import Endpoint, make_prompt, run_load  # noqa: E402
from benchmarks.measures.places import NAMES, Place, Started, places, serving  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402
from benchmarks.peers import engines  # noqa: E402

SEED = 0
NUM_WORDS = 32
NUM_STREAMS = 16
NUM_TOKENS = 64
NUM_REQUESTS = 60
ROUNDS = 3
NUM_READERS = 500
READER_TOKENS = 400
RAMP_S = 2.0
NUM_AT_ONCE = 64
PACE_S = 0.05
"""Seconds of a step of the echo engine while CPU is counted: 16 streams have 320 tokens/s, about what the model has."""
NUM_SHORT = 160
NUM_LONG = 32
MORE_TOKENS = 128
IDLE_S = 3.0
_ON_SERVICES: Figures = {
    "added_ttft_p50_ms": 8,
    "added_ttft_p99_ms": 20,
    "kept": 0.90,
    "reader_tokens_per_cpu_s": 20_000,
    "lag_max_at_most_ms": 50,
    "cpu_request_ms": 2.5,
    "cpu_token_us": 300,
}
GOALS: dict[str, Figures] = {
    "embedded": {
        "added_ttft_p50_ms": 3,
        "added_ttft_p99_ms": 8,
        "kept": 0.95,
        "reader_tokens_per_cpu_s": 40_000,
        "at_once_ttft_p50_ms": 60,
        "lag_max_at_most_ms": 50,
        "cpu_request_ms": 2.5,
        "cpu_token_us": 150,
    },
    "services": _ON_SERVICES,
    "fleet": _ON_SERVICES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was measured in one place."""

    figures: Figures
    lag: lag.Histogram
    cpu_by_part: Mapping[str, Figures]


class Direct:
    """An engine in a process of its own, spoken to as a worker does."""

    def __init__(self, smoke: bool) -> None:
        self._folder = None if smoke else engines.MODEL_DIR
        config = EngineConfig(kind="echo") if smoke else EngineConfig(threads=engines.NUM_THREADS)
        self._engine = EngineProcess(replace(config, max_sequences=NUM_STREAMS), self._folder)
        self._tokenizer = load_tokenizer(self._folder)
        self._num_asked = 0

    async def open(self) -> None:
        await self._engine.open(timeout_s=120)
        self._outputs = self._engine.outputs()

    async def aclose(self) -> None:
        await self._engine.aclose()

    async def run(self, prompts: Sequence[str], num_tokens: int) -> tuple[list[float], float]:
        """All prompts at once; returns when each one's first token came and how long it took in all."""
        started = time.perf_counter()
        left = {self._add(prompt, num_tokens) for prompt in prompts}
        first: dict[str, float] = {}
        while left:
            output = await anext(self._outputs)
            now = time.perf_counter()
            for emitted in output.emitted:
                first.setdefault(emitted.id, now - started)
                if emitted.finish:
                    left.discard(emitted.id)
        return list(first.values()), time.perf_counter() - started

    def _add(self, prompt: str, num_tokens: int) -> str:
        self._num_asked += 1
        sampling = Sampling(max_tokens=num_tokens, temperature=0.0, ignore_eos=True)
        ids = self._tokenizer.encode(prompt)
        self._engine.add(Add(id=str(self._num_asked), prompt_ids=ids, sampling=sampling, seed=0))
        return str(self._num_asked)


async def measure_path(direct: Direct, endpoint: Endpoint, options: argparse.Namespace) -> Figures:
    """By turns: the engine alone, and the whole server with its own."""
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(options.requests):
        for name, into in (("server", ours), ("engine", theirs)):
            prompt = make_prompt(f"{SEED}/{name}/{number}", NUM_WORDS)
            if name == "server":
                [answer], _ = await run_load(endpoint, [prompt], num_streams=1, num_tokens=4)
                into.append(answer.ttft_s)
            else:
                [ttft_s], _ = await direct.run([prompt], 4)
                into.append(ttft_s)
    rounds: list[Figures] = []
    for number in range(options.rounds):
        prompts = [make_prompt(f"{SEED}/many/{number}/{index}", NUM_WORDS) for index in range(2 * NUM_STREAMS)]
        answers, wall_s = await run_load(
            endpoint, prompts[:NUM_STREAMS], num_streams=NUM_STREAMS, num_tokens=NUM_TOKENS
        )
        _, alone_s = await direct.run(prompts[NUM_STREAMS:], NUM_TOKENS)
        rounds.append({"server": sum(each.num_tokens for each in answers) / wall_s, "engine": 1024 / alone_s})
    both = median(rounds)
    return {
        "engine_ttft_p50_ms": 1000 * percentile(theirs, 0.5),
        "added_ttft_p50_ms": 1000 * (percentile(ours, 0.5) - percentile(theirs, 0.5)),
        "added_ttft_p99_ms": 1000 * (percentile(ours, 0.99) - percentile(theirs, 0.99)),
        "engine_tokens_per_s": both["engine"],
        "server_tokens_per_s": both["server"],
        "kept": both["server"] / both["engine"],
    }


async def measure_readers(server: Started, options: argparse.Namespace) -> Figures:
    """Many readers of an engine that costs next to nothing."""
    rounds: list[Figures] = []
    for number in range(options.rounds):
        prompts = [make_prompt(f"{SEED}/readers/{number}/{index}", 8) for index in range(options.readers)]
        before = server.own_cpu_s()
        answers, wall_s = await run_load(
            server.endpoint, prompts, num_streams=options.readers, num_tokens=options.reader_tokens, ramp_s=RAMP_S
        )
        num_tokens = sum(each.num_tokens for each in answers)
        rounds.append(
            {
                "reader_tokens_per_s": num_tokens / wall_s,
                "reader_tokens_per_cpu_s": num_tokens / max(server.own_cpu_s() - before, 1e-9),
            }
        )
    return median(rounds)


async def measure_at_once(endpoint: Endpoint, options: argparse.Namespace) -> Figures:
    """Requests that come in one moment, to an engine that answers at once."""
    rounds: list[Figures] = []
    for number in range(options.rounds):
        prompts = [make_prompt(f"{SEED}/at once/{number}/{index}", 8) for index in range(NUM_AT_ONCE)]
        answers, _ = await run_load(endpoint, prompts, num_streams=NUM_AT_ONCE, num_tokens=4)
        ttfts = [each.ttft_s for each in answers]
        rounds.append(
            {
                "at_once_ttft_p50_ms": 1000 * percentile(ttfts, 0.5),
                "at_once_ttft_p99_ms": 1000 * percentile(ttfts, 0.99),
            }
        )
    return median(rounds)


async def measure_lag(server: Started, options: argparse.Namespace) -> lag.Histogram:
    """The event loop's lag while requests come at once and while all readers read; no round is left out."""
    before = await asyncio.to_thread(lag.read_lag, server.metrics_port)
    await measure_at_once(server.endpoint, options)
    await measure_readers(server, options)
    return (await asyncio.to_thread(lag.read_lag, server.metrics_port)).since(before)


async def measure_cpu(server: Started, options: argparse.Namespace) -> tuple[Figures, dict[str, Figures]]:
    """CPU of a request and of a token, in all and by part: the difference of short and long answers at one pace.

    What the processes take while nobody asks is part of a token's cost, and told apart as well.
    """
    idle = sum((await _spent(server, asyncio.sleep(options.idle_s))).values()) / options.idle_s
    short = await _spent(server, _ask_many(server.endpoint, "short", options.short, 1))
    started = time.perf_counter()
    long = await _spent(server, _ask_many(server.endpoint, "long", options.long, 1 + MORE_TOKENS))
    long_s = time.perf_counter() - started
    by_part = costs(short_s=short, num_short=options.short, long_s=long, num_long=options.long, more_tokens=MORE_TOKENS)
    both = total(by_part)
    idle_us = 1e6 * idle * long_s / (options.long * (1 + MORE_TOKENS))
    figures = {
        "cpu_request_ms": both["request_ms"],
        "cpu_token_us": both["token_us"],
        "cpu_token_of_it_idle_us": idle_us,
        "cpu_idle_ms_per_s": 1000 * idle,
    }
    return figures, by_part


async def _spent(server: Started, doing: Coroutine[Any, Any, object]) -> Figures:
    """CPU seconds of each part meanwhile."""
    before = cpu_by_part(read_processes(), server.roots)
    await doing
    after = cpu_by_part(read_processes(), server.roots)
    return {part: after[part] - before[part] for part in after}


async def _ask_many(endpoint: Endpoint, seed: str, num_requests: int, num_tokens: int) -> None:
    prompts = [make_prompt(f"{SEED}/cpu/{seed}/{index}", NUM_WORDS) for index in range(num_requests)]
    await run_load(endpoint, prompts, num_streams=NUM_STREAMS, num_tokens=num_tokens)


async def measure(place: Place, folder: Path, options: argparse.Namespace) -> Row:
    """Every measure in one place. All its servers have one folder: its key is the first one's."""
    figures: Figures = {}
    direct = Direct(options.smoke)
    await direct.open()
    try:
        with serving(place, folder, "echo" if options.smoke else "axon", NUM_STREAMS) as server:
            await run_load(server.endpoint, [make_prompt("warm", NUM_WORDS)], num_streams=1, num_tokens=4)
            await direct.run([make_prompt("warm too", NUM_WORDS)], 4)
            figures |= await measure_path(direct, server.endpoint, options)
    finally:
        await direct.aclose()
    most = max(options.readers, NUM_AT_ONCE)
    with serving(place, folder, "echo", most) as server:
        await warm(server)
        figures |= await measure_readers(server, options)
        figures |= await measure_at_once(server.endpoint, options)
    with serving(place, folder, "echo", most, lifecycle_lag_every_s=lag.EVERY_S) as server:
        await warm(server)
        seen = await measure_lag(server, options)
    with serving(place, folder, "echo", NUM_STREAMS, engine_echo_step_s=options.pace_s) as server:
        await warm(server)
        cpu, by_part = await measure_cpu(server, options)
    return Row(figures=figures | lag.lag_figures(seen) | cpu, lag=seen, cpu_by_part=by_part)


async def warm(server: Started) -> None:
    await run_load(server.endpoint, [make_prompt("warm", 8)] * 8, num_streams=8, num_tokens=4)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--requests", type=int, default=NUM_REQUESTS)
    parser.add_argument("--readers", type=int, default=NUM_READERS)
    parser.add_argument("--reader-tokens", type=int, default=READER_TOKENS)
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="the smallest run: no model, the twins only")
    options = parser.parse_args()
    options.short, options.long, options.pace_s, options.idle_s = NUM_SHORT, NUM_LONG, PACE_S, IDLE_S
    if options.smoke:
        options.places, options.rounds, options.requests, options.readers = ["embedded"], 1, 2, 8
        options.short, options.long, options.pace_s, options.idle_s = NUM_STREAMS, NUM_STREAMS, 0.002, 0.2
    return options


def main() -> None:
    options = parse()
    report = Report("path", options)
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory(prefix="axon-path-") as folder, places(options.places) as found:
        for place in found:
            rows[place.name] = row = asyncio.run(measure(place, Path(folder) / place.name, options))
            parts = {f"{place.name}: CPU of {part}": each for part, each in row.cpu_by_part.items()}
            print(table({place.name: row.figures, **parts}), flush=True)
            print(f"lag of the event loop, a look every {1000 * lag.EVERY_S:g} ms:\n{lag.shown(row.lag)}", flush=True)
    report.end(
        {
            "goals": {name: GOALS[name] for name in rows},
            "places": rounded({name: row.figures for name, row in rows.items()}),
            "lag_buckets": {name: lag.buckets(row.lag) for name, row in rows.items()},
            "cpu_by_part": {name: rounded(row.cpu_by_part) for name, row in rows.items()},
        }
    )


if __name__ == "__main__":
    main()
