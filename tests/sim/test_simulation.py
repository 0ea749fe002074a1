"""The protocol survives a minute of everything going wrong, and each broken rule is noticed."""

import os
import re

import pytest

from tests import long
from tests.sim.mutants import MUTANTS
from tests.sim.schedule import run
from tests.sim.search import report, search, search_all

SECONDS = float(os.environ.get("SIM_SECONDS") or long.share(300))
MUTANT_SECONDS = 120.0


@pytest.mark.long
@pytest.mark.timeout(SECONDS + 120)
def test_no_schedule_breaks_a_promise() -> None:
    num_schedules, num_turns, failure = search_all(0, SECONDS)
    assert failure is None, report(failure)
    assert num_turns > num_schedules  # something was going on


@pytest.mark.timeout(MUTANT_SECONDS + 60)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_is_found(name: str) -> None:
    _, _, failure = search(0, 1, MUTANT_SECONDS, name)
    assert failure is not None, f"{name} went unnoticed"


@pytest.mark.parametrize("seed", [1047])
def test_a_schedule_that_once_broke_a_promise_breaks_none(seed: int) -> None:
    assert not run(seed).violation


def test_a_seed_gives_the_same_history_again() -> None:
    def shape(events: list[str]) -> list[str]:
        """The events without the names that are drawn anew in each run."""
        return [re.sub(r"worker-[0-9a-f]{12}|[0-9a-hjkmnp-tv-z]{26}", "ID", event) for event in events]

    for seed in (1, 2, 3, 28):
        assert shape(run(seed).events) == shape(run(seed).events)
