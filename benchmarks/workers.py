"""Two workers against one: a fleet's tokens/s with each, on the real services, read through nginx.

python -m benchmarks.workers             a table, and one JSON line last
python -m benchmarks.workers --save      also keeps the JSON in benchmarks/results/
python -m benchmarks.workers --smoke     the smallest run

The engine only echoes, with a step of 20 ms and 8 slots, so that a worker has 400 tokens/s and the machine's cores
decide nothing. Twice as many streams as there are slots in all, rounds by turns; the median counts.
"""

import argparse
import asyncio
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.fleet.fleet import Fleet, shared_fleet  # noqa: E402

from benchmarks.measures.figures import Figures, median, rounded, table  # noqa: E402
from benchmarks.measures.load import Endpoint, figures_of, make_prompt, run_load  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402

SLOTS = 8
STEP_S = 0.02
NUM_TOKENS = 100
GOAL = 1.9


async def measure(fleet: Fleet, *, workers: int, seed: str, rounds_of: int) -> Figures:
    """One round: each stream asks ``rounds_of`` times."""
    assert fleet.edge is not None
    endpoint = Endpoint(port=fleet.edge.port, model="echo", headers=(("Authorization", f"Bearer {fleet.key}"),))
    num_streams = 2 * SLOTS * workers
    prompts = [make_prompt(f"{seed}/{index}", 8) for index in range(num_streams * rounds_of)]
    answers, wall_s = await run_load(endpoint, prompts, num_streams=num_streams, num_tokens=NUM_TOKENS)
    return figures_of(answers, wall_s)


def run(options: argparse.Namespace) -> dict[str, Figures]:
    rounds: dict[int, list[Figures]] = {1: [], 2: []}
    with ExitStack() as stack:
        fleets: dict[int, Fleet] = {}
        for workers in rounds:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="axon-workers-")))
            folder.chmod(0o755)  # nginx has a user of its own
            fleet = shared_fleet(
                folder,
                stack,
                engine_echo_step_s=STEP_S,
                engine_max_sequences=SLOTS,
                admission_concurrent=1000,
                admission_backlog_total=2000,
            )
            fleets[workers] = fleet.start(gateways=2, workers=workers, controls=1)
        for number in range(options.rounds):
            for workers, fleet in fleets.items():
                seed = f"{workers}/{number}"
                rounds[workers].append(asyncio.run(measure(fleet, workers=workers, seed=seed, rounds_of=options.asks)))
    return {f"{workers} workers": median(each) for workers, each in rounds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--asks", type=int, default=3, help="requests of each stream in a round")
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="the smallest run")
    options = parser.parse_args()
    if options.smoke:
        options.rounds = options.asks = 1
    report = Report("workers", options)
    rows = run(options)
    ratio = rows["2 workers"]["tokens_per_s"] / rows["1 workers"]["tokens_per_s"]
    print(table(rows))
    print(f"two against one: {ratio:.2f} (goal {GOAL})")
    report.end(
        {
            "ratio": round(ratio, 3),
            "goal": GOAL,
            "workers": rounded(rows),
        }
    )


if __name__ == "__main__":
    main()
