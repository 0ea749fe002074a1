"""Runs the simulation for as long as it is told: ``make sim SECONDS=600``. A failing seed is printed with its history.

python -m tests.sim --seconds 120          two minutes on every core
python -m tests.sim --seed 1234            one schedule again, with its whole history
python -m tests.sim --mutant settle_twice  with a rule of the protocol broken: must fail
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import sys
import time

from tests.sim.mutants import MUTANTS
from tests.sim.schedule import Outcome, run

_SHOWN_EVENTS = 200


def search(first: int, stride: int, seconds: float, mutant: str) -> tuple[int, int, Outcome | None]:
    """Schedules ``first``, ``first + stride`` … until one fails or the time is over: how many, turns, the failure."""
    deadline = time.monotonic() + seconds
    num_schedules = num_turns = 0
    seed = first
    with MUTANTS[mutant]() if mutant else contextlib.nullcontext():
        while time.monotonic() < deadline:
            outcome = run(seed)
            num_schedules += 1
            num_turns += outcome.num_turns
            if outcome.violation:
                return num_schedules, num_turns, outcome
            seed += stride
    return num_schedules, num_turns, None


def search_all(first: int, seconds: float, mutant: str = "", num_processes: int = 0) -> tuple[int, int, Outcome | None]:
    """The same on several cores."""
    num_processes = num_processes or os.cpu_count() or 1
    tasks = [(first + index, num_processes, seconds, mutant) for index in range(num_processes)]
    with multiprocessing.get_context("spawn").Pool(num_processes) as pool:
        results = pool.starmap(search, tasks)
    failures = [failure for _, _, failure in results if failure is not None]
    return sum(each[0] for each in results), sum(each[1] for each in results), failures[0] if failures else None


def report(outcome: Outcome) -> str:
    """A failure for people: what broke, how it came to it, how to see it again."""
    events = "\n".join(outcome.events[-_SHOWN_EVENTS:])
    again = f"python -m tests.sim --seed {outcome.seed}"
    return f"{events}\n\nseed {outcome.seed}: {outcome.violation}\nagain with: {again}"


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
