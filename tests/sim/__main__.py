"""Runs the simulation for as long as it is told: ``make sim SECONDS=600``. A failing seed is printed with its history.

python -m tests.sim --seconds 120          two minutes on every core
python -m tests.sim --seed 1234            one schedule again, with its whole history
python -m tests.sim --mutant settle_twice  with a rule of the protocol broken: must fail
"""

import argparse
import contextlib
import json
import sys
import time

from tests.sim.mutants import MUTANTS
from tests.sim.schedule import run
from tests.sim.search import report, search_all


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.sim", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to search (120)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--seed", type=int, help="run this schedule alone and print its history")
    parser.add_argument("--mutant", default="", choices=["", *MUTANTS], help="a rule to break")
    options = parser.parse_args()
    if options.seed is not None:
        with MUTANTS[options.mutant]() if options.mutant else contextlib.nullcontext():
            outcome = run(options.seed)
        print(report(outcome) if outcome.violation else "\n".join([*outcome.events, "no violation"]))
        return bool(outcome.violation)
    started = time.monotonic()
    num_schedules, num_turns, failure = search_all(options.first, options.seconds, options.mutant)
    if failure is not None:
        print(report(failure))
    seconds = time.monotonic() - started
    print(f"{num_schedules} schedules with {num_turns} turns in {seconds:.0f} s")
    seed = failure.seed if failure else None
    print(json.dumps({"schedules": num_schedules, "turns": num_turns, "seconds": round(seconds), "failed_seed": seed}))
    return failure is not None


if __name__ == "__main__":
    sys.exit(main())
