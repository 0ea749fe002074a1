"""The slowest turns, and the steps that the slowest of a hundred are made of."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.tracing.slowest import slowest
from axon.domain.turn import Turn
from tests.domain.tracing.turns import CREATED, turn_of, turns


def test_nothing_is_made_of_nothing() -> None:
    found = slowest([], most=5, now=CREATED)
    assert (found.num_turns, found.steps, found.turns) == (0, (), ())


def test_the_tail_is_told_from_the_rest() -> None:
    quick = [turn_of([(0.1, 0.0, 0.2, 1.0)]) for _ in range(198)]
    waiting = [replace(turn_of([(60.0, 0.0, 0.2, 1.0)]), id=f"slow-{number}") for number in range(2)]
    found = slowest([*quick, *waiting], most=3, now=CREATED + 100)
    assert found.num_turns == 200
    assert found.p50_s < 3 < 60 < found.p99_s
    assert (found.steps[0].name, round(found.steps[0].tail_s)) == ("job.queue_wait", 60)
    assert found.steps[0].share > 0.9
    assert found.steps[0].median_s == pytest.approx(0.1, abs=1e-3)
    assert {turn.id for turn in found.turns[:2]} == {"slow-0", "slow-1"}
    assert (found.turns[0].longest, found.turns[0].request) == ("job.queue_wait", "req_1")
    assert len(found.turns) == 3


@given(st.lists(turns, min_size=1, max_size=20))
def test_shares_are_of_a_whole(some: list[Turn]) -> None:
    found = slowest(some, most=5, now=CREATED + 1e6)
    assert sum(step.share for step in found.steps) == pytest.approx(1.0)
    assert [turn.seconds for turn in found.turns] == sorted((turn.seconds for turn in found.turns), reverse=True)
    assert found.p50_s <= found.p99_s
