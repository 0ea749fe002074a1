"""The protocol survives a minute of everything going wrong, and each broken rule is noticed."""

import os
import re

import pytest

from tests import long
from tests.sim.mutants import MUTANTS
from tests.sim.schedule import run
from tests.sim.search import report, search, search_all

SECONDS = float(os.environ.get("SIM_SECONDS") or (300 if long.whole() else 15))
MUTANT_SECONDS = 120.0
FOUND_AT = {
    "append_allows_a_gap": 6,
    "append_ignores_the_epoch": 79,
    "barrier_skipped": 102,
    "beat_after_the_settling": 31,
    "cancel_after_done": 53,
    "claim_without_a_lease_check": 59,
    "epoch_restarting_after_a_flush": 45,
    "foreign_job_acked_before_it_is_published": 5,
    "foreign_job_given_back_for_ever": 5,
    "hand_over_that_acks": 58,
    "history_without_a_barrier": 27,
    "missing_treated_as_ok": 39,
    "move_that_is_not_told": 5,
    "park_that_forgets": 18,
    "percentage_applied_to_pinned_sessions": 3,
    "pin_read_from_memory_after_a_move": 13,
    "pin_read_without_the_barrier": 173,
    "pin_that_overwrites": 19,
    "release_that_forgets_the_crash_count": 80,
    "repeated_request_rendered_anew": 7,
    "settle_twice": 31,
    "store_asked_after_silence_alone": 24,
    "sweep_that_stops_at_the_first_page": 137,
    "ticket_that_never_lapses": 3,
    "tokens_after_a_stop": 79,
    "twin_that_publishes_its_own_body": 7,
}
"""The first schedule that found the broken rule, where it took a while: the search begins there, and goes on from there
when the schedules have changed."""


@pytest.mark.long
@pytest.mark.timeout(SECONDS + 120)
def test_no_schedule_breaks_a_promise() -> None:
    """On every core; in a short run on one, for the other is busy with other tests."""
    num_schedules, num_turns, failure = search_all(0, SECONDS, num_processes=0 if long.whole() else 1)
    assert failure is None, report(failure)
    assert num_turns > num_schedules  # something was going on


@pytest.mark.long
@pytest.mark.timeout(MUTANT_SECONDS + 60)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_is_found(name: str) -> None:
    _, _, failure = search(FOUND_AT.get(name, 0), 1, MUTANT_SECONDS, name)
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


def test_every_schedule_that_is_remembered_is_of_a_mutant() -> None:
    assert FOUND_AT.keys() <= MUTANTS.keys()
