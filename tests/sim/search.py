"""Looks for a schedule that breaks a promise, on one core or on all; a module that new processes can import."""

import contextlib
import multiprocessing
import os
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
