"""The protocol's speed on the twins and on Redis, RabbitMQ and PostgreSQL, which it starts itself. No model, no HTTP.

python -m benchmarks.protocol              prints a table, and one JSON line last
python -m benchmarks.protocol --save       also keeps the JSON in benchmarks/results/
python -m benchmarks.protocol --only idle  one part: stream, accept, persist or idle
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import uvloop

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # run by its path, it finds the servers' classes as well

from benchmarks.measures import accept, idle, persist, stream  # noqa: E402
from benchmarks.measures.figures import Figures, median, rounded, table  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402
from benchmarks.measures.stage import Services, Stage, open_stage, started_services  # noqa: E402

SEED = 0
ROUNDS = 3
STEP_S = 0.005
"""A fast engine's step."""
JOBS = (1, 32, 256)
READ_JOBS = (1, 32)
FOLLOWERS = (500, 5000)

Measure = Callable[[Stage], Awaitable[Figures]]


def _stream() -> Iterator[tuple[str, Measure]]:
    every = f"a step every {STEP_S * 1000:g} ms"
    for num_jobs in JOBS:
        run = partial(stream.throughput, num_jobs=num_jobs, seconds=0.4)
        yield f"log, {num_jobs} jobs, a step after each append", partial(run, step_s=None)
        yield f"log, {num_jobs} jobs, {every}", partial(run, step_s=STEP_S)
    for num_jobs in READ_JOBS:
        read = partial(stream.latency, num_jobs=num_jobs, seconds=0.4, step_s=STEP_S)
        yield f"append to reader, {num_jobs} jobs, {every}", read


def _accept() -> Iterator[tuple[str, Measure]]:
    yield "accept, one at a time", partial(accept.accepting, concurrency=1, num_turns=100)
    yield "accept, 32 at a time", partial(accept.accepting, concurrency=32, num_turns=400)


def _persist() -> Iterator[tuple[str, Measure]]:
    yield "journal to store, backlog of 600", partial(persist.drain, num_turns=600)
    yield "journal to store, 100 turns/s", partial(persist.lag, per_s=100.0, seconds=1.0)


PARTS = {"stream": _stream, "accept": _accept, "persist": _persist}


async def run_parts(services: Services | None, only: str) -> dict[str, Figures]:
    """Every measure in every round, so that a noisy moment hits one round of each, not all of one."""
    rounds: dict[str, list[Figures]] = {}
    for _ in range(ROUNDS):
        for part in [only] if only else PARTS:
            async with open_stage(services.urls if services else None) as stage:
                for name, measure in PARTS[part]():
                    rounds.setdefault(f"{stage.name}: {name}", []).append(await measure(stage))
            if services:
                services.redis.flush()
    return {name: median(figures) for name, figures in rounds.items()}


def run_idle(services: Services | None) -> dict[str, Figures]:
    rows = {}
    for num_followers in FOLLOWERS:
        rounds = idle.idle_rounds(
            services.urls if services else None, num_followers, settle_s=4.0, window_s=2.0, rounds=ROUNDS
        )
        rows[f"{'services' if services else 'twins'}: {num_followers} idle followers"] = median(rounds)
        if services:
            services.redis.flush()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.protocol")
    parser.add_argument("--only", choices=[*PARTS, "idle"], default="")
    add_report_options(parser)
    options = parser.parse_args()
    random.seed(SEED)
    report = Report("protocol", options)
    rows: dict[str, Figures] = {}
    with started_services() as services:
        versions = services.versions()
        print(f"servers {versions}\n", flush=True)
        for place in (None, services):
            if options.only != "idle":
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    rows |= runner.run(run_parts(place, options.only))
            if options.only in ("", "idle"):
                rows |= run_idle(place)
    print(table(rows), end="\n\n")
    report.end({"seed": SEED, "rounds": ROUNDS, "servers": versions, "figures": rounded(rows)})


if __name__ == "__main__":
    main()
