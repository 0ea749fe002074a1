"""At full load a tier changes the rate of tokens; without it, and among equals, nobody is slowed."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.engine.schedule.limits.controller import NO_DRAFTS
from axon.engine.schedule.scheduler import Scheduler
from tests.engine.builders import make_add, make_scheduler
from tests.engine.schedule.pipeline import Pipeline
from tests.long import examples

tiers = st.integers(-1, 1)


def make_crowd(priorities: list[int], *, slots: int) -> Scheduler:
    """Streams without end, each of a tenant of its own."""
    scheduler = make_scheduler(blocks=2000, max_sequences=slots, max_batch_tokens=64)
    for index, priority in enumerate(priorities):
        scheduler.add(
            make_add(
                str(index), prompt=[index, 1], max_tokens=900, ignore_eos=True, tenant=str(index), priority=priority
            )
        )
    return scheduler


def count_tokens(scheduler: Scheduler, *, steps: int, lag: int = 0, skip: int = 0) -> Counter[str]:
    pipeline = Pipeline(scheduler, lag)
    for _ in range(skip):
        pipeline.step()
    tokens: Counter[str] = Counter()
    for _ in range(steps):
        tokens.update(each.id for each in pipeline.step()[1])
        scheduler.check()
    return tokens


def test_at_full_load_a_tier_has_two_fifths_of_the_rate_of_the_highest_and_the_next_one_a_fifth() -> None:
    tokens = count_tokens(make_crowd([1, 0, -1], slots=3), steps=80, skip=8)
    assert dict(tokens) == {"0": 80, "1": 32, "2": 16}


def test_with_a_slot_to_spare_nobody_is_slowed() -> None:
    assert set(count_tokens(make_crowd([1, 0, -1], slots=4), steps=40, skip=8).values()) == {40}


@pytest.mark.parametrize("priority", [-1, 0, 1])
def test_among_equals_nobody_is_slowed(priority: int) -> None:
    assert set(count_tokens(make_crowd([priority] * 3, slots=3), steps=40, skip=8).values()) == {40}


def test_the_highest_tier_that_runs_is_not_slowed() -> None:
    assert count_tokens(make_crowd([0, -1], slots=2), steps=40, skip=8) == {"0": 40, "1": 16}


def test_the_turns_of_a_tier_are_spread_over_the_steps() -> None:
    scheduler = make_crowd([1] + 5 * [0] + 5 * [-1], slots=11)
    pipeline = Pipeline(scheduler, 0)
    for _ in range(8):
        pipeline.step()
    assert {len(pipeline.step()[0].spans) for _ in range(20)} == {1 + 2 + 1}


@given(st.lists(tiers, min_size=2, max_size=8), st.integers(0, 1), st.sampled_from([NO_DRAFTS, 0.05]))
@settings(max_examples=examples(40), deadline=None)
def test_rates_are_as_the_tiers_whatever_runs_and_however_it_is_stepped(
    priorities: list[int], lag: int, price: float
) -> None:
    scheduler = make_crowd(priorities, slots=len(priorities))
    pipeline = Pipeline(scheduler, lag, draft_price=NO_DRAFTS if lag else price)
    for _ in range(20):
        pipeline.step()
    steps: Counter[str] = Counter()
    for _ in range(80):
        steps.update(span.id for span in pipeline.step()[0].spans)
    highest = max(priorities)
    for index, priority in enumerate(priorities):
        assert steps[str(index)] == pytest.approx(80 * (1, 0.4, 0.2)[highest - priority], rel=0.1)


def test_a_prompt_of_a_higher_tier_is_computed_first() -> None:
    scheduler = make_scheduler(blocks=400, max_batch_tokens=64, max_prefill_tokens=8)
    scheduler.add(make_add("stream", prompt=3, max_tokens=200))
    for id, priority in {"flex": -1, "default": 0, "urgent": 1}.items():
        scheduler.schedule()
        scheduler.add(make_add(id, prompt=[priority + 5] * 60, priority=priority))
    spans = {span.id: len(span.token_ids) for span in scheduler.schedule().spans}
    assert max(spans, key=spans.__getitem__) == "urgent"
