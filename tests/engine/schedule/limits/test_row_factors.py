"""What drafts add to a step is measured by the number of streams, and not only read off a line."""

import pytest

from axon.engine.batch import Batch, Draw, Span
from axon.engine.schedule.limits.controller import NO_DRAFTS, Outlook
from axon.engine.schedule.limits.learned_controller import LearnedController
from axon.engine.schedule.limits.row_factors import RowFactors
from tests.engine.builders import make_add

ALONE_S, ROW_S = 0.005, 0.0005
PAST = 200


def taught(*, extra_s: float, num_drafts: int, steps: int = 100, alone_s: float = ALONE_S) -> RowFactors:
    """Has seen steps of 4 streams, of which half have drafts."""
    factors = RowFactors()
    for _ in range(steps):
        factors.observe(4, 0, step_s=alone_s, alone_s=ALONE_S, row_s=ROW_S)
        factors.observe(4, num_drafts, step_s=alone_s + extra_s, alone_s=ALONE_S, row_s=ROW_S)
    return factors


def test_before_anything_is_measured_the_line_holds() -> None:
    factors = RowFactors()
    factors.observe(4, 2, step_s=1.0, alone_s=ALONE_S, row_s=ROW_S)  # nothing says what the streams alone take
    assert factors.factor(4) == 1.0


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_it_finds_what_a_draft_costs(factor: float) -> None:
    factors = taught(extra_s=2 * factor * ROW_S, num_drafts=2)
    assert factors.factor(4) == pytest.approx(factor, rel=0.05)
    assert factors.factor(3) == 1.0, "other numbers of streams are computed in other groups"


def test_a_delay_counts_within_bounds() -> None:
    factors = taught(extra_s=ROW_S, num_drafts=1)
    factors.observe(4, 1, step_s=60.0, alone_s=ALONE_S, row_s=ROW_S)
    assert factors.factor(4) < 1.5


def test_a_step_that_is_shorter_than_predicted_yields_its_tokens_sooner() -> None:
    factors = taught(extra_s=ROW_S, num_drafts=1, alone_s=0.8 * ALONE_S)
    assert factors.factor(4) == pytest.approx(1 / 0.8, rel=0.05)


def test_what_was_dear_is_tried_again_after_a_while() -> None:
    factors = taught(extra_s=3 * ROW_S, num_drafts=1)
    for _ in range(100):
        factors.observe(4, 0, step_s=ALONE_S, alone_s=ALONE_S, row_s=ROW_S)
    assert 2.0 < factors.factor(4) < 3.0
    for _ in range(600):
        factors.observe(4, 0, step_s=ALONE_S, alone_s=ALONE_S, row_s=ROW_S)
    assert factors.factor(4) < 1.2


def make_batch(num_streams: int, num_drafts: int) -> Batch:
    draw = Draw(sampling=make_add().sampling, seed=0, choice=0, position=1)
    drafts = [num_drafts if number == 0 else 0 for number in range(num_streams)]
    return Batch(
        tuple(
            Span(id=str(n), first=PAST, token_ids=(1,) * (1 + count), block_ids=(n,), draw=draw, drafts=(draw,) * count)
            for n, count in enumerate(drafts)
        )
    )


def price_at(num_streams: int) -> float:
    """Of a draft on a machine that computes rows in groups of four."""
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0, drafts=True)
    for number in range(400):
        batch = make_batch(num_streams, number % 2)
        took_s = 0.004 + 0.002 * -(-batch.num_tokens // 4)
        controller.observe(batch, step_s=took_s, compute_s=took_s)
    return controller.draft_price(Outlook(num_streams, PAST * num_streams))


def test_a_draft_that_opens_a_group_of_rows_is_not_worth_it_and_one_within_a_group_costs_next_to_nothing() -> None:
    assert price_at(4) >= NO_DRAFTS
    assert price_at(3) < 0.2
