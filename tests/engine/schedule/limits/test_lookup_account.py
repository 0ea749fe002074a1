"""Looked-up drafts that are never right cost next to nothing, whatever a row costs and however it was priced."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.engine.drafts import Drafted
from axon.engine.schedule.limits.controller import ExpectedDrafts, Outlook
from axon.engine.schedule.limits.draft_choice import DraftCosts
from axon.engine.schedule.limits.learned_controller import LearnedController
from axon.engine.schedule.limits.lookup_account import ALLOWANCE, LookupAccount
from tests.engine.schedule.limits.test_draft_ledger import days
from tests.engine.schedule.limits.test_row_factors import PAST, make_batch
from tests.engine.schedule.machines import NEOVERSE, TILED, XEON, Day, Machine
from tests.long import examples

STEPS = 1500
FIRST_STEPS = 8  # what the account begins with


def test_it_pays_what_it_has_and_then_as_much_as_the_steps_pay_in() -> None:
    account = LookupAccount()
    account.enter(step_s=1.0, plain_s=1.0, saved_s=0.0)
    assert account.can_pay(FIRST_STEPS)
    account.enter(step_s=1.0, plain_s=1.0, saved_s=-FIRST_STEPS - 0.5)
    for _ in range(48):
        assert not account.can_pay()
        account.enter(step_s=1.0, plain_s=1.0, saved_s=0.0)
    account.enter(step_s=1.0, plain_s=1.0, saved_s=0.0)
    assert account.can_pay()


def test_what_was_saved_is_kept_up_to_a_limit() -> None:
    account = LookupAccount()
    for _ in range(1000):
        account.enter(step_s=1.0, plain_s=1.0, saved_s=1.0)
    assert account.balance_s == 64


@dataclass
class Streams:
    """What stands before the next step: so many streams, and no prompt."""

    num: int
    has_prompts: bool = False

    def outlook(self) -> Outlook:
        return Outlook(self.num, PAST * self.num)

    def expected_lookups(self, price: float) -> ExpectedDrafts:
        return ExpectedDrafts()

    def would_ask(self, costs: DraftCosts) -> bool:
        return False


class Stand:
    """Streams that look for drafts beside each other on a machine, as the controller's price lets them."""

    def __init__(self, machine: Machine, day: Day, *, streams: int) -> None:
        self._machine, self._factors, self._streams = machine, day.factors(), streams
        self.controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0, drafts=True)

    def run(self, steps: int, *, drafts: int, right: int) -> tuple[float, float]:
        """The time of so many steps with so many drafts each, and what the same tokens would have taken without."""
        took_s = plain_s = 0.0
        for _ in range(steps):
            num_drafts = drafts if self.controller.limits(Streams(self._streams)).has_drafts else 0
            batch = make_batch(self._streams, num_drafts)
            chance, slow = next(self._factors)
            step_s = self._machine.step_s(batch) * chance * slow
            num_right = right if num_drafts else 0
            self.controller.observe(batch, step_s=step_s, compute_s=step_s, drafted=Drafted(num_looked_up=num_right))
            took_s += step_s
            alone_s = self._machine.step_s(make_batch(self._streams, 0)) * chance * slow
            plain_s += alone_s * (1 + num_right / self._streams)
        return took_s, plain_s


@settings(max_examples=examples(30), deadline=None)
@given(
    machine=st.sampled_from([XEON, NEOVERSE, TILED]),
    day=days,
    streams=st.integers(1, 16),
    drafts=st.integers(1, 12),
)
def test_useless_drafts_cost_two_percent_at_most_beside_the_first(
    machine: Machine, day: Day, streams: int, drafts: int
) -> None:
    """Up to four where another process takes cores away at times: steps then differ by more than drafts do."""
    took_s, plain_s = Stand(machine, day, streams=streams).run(STEPS, drafts=drafts, right=0)
    first_s = (FIRST_STEPS + 2) * day.slow_factor * machine.step_s(make_batch(streams, 0))
    share = (4 if day.slow_share else 2) * ALLOWANCE
    assert took_s <= (1 + share) * plain_s + first_s


@pytest.mark.parametrize(("machine", "streams"), [(XEON, 1), (XEON, 4), (TILED, 16)])
def test_drafts_that_pay_go_on(machine: Machine, streams: int) -> None:
    took_s, plain_s = Stand(machine, Day(jitter=0.05), streams=streams).run(STEPS, drafts=streams, right=streams)
    assert plain_s > 1.05 * took_s


def test_drafts_that_begin_to_pay_are_tried_again() -> None:
    stand = Stand(XEON, Day(jitter=0.05), streams=4)
    stand.run(STEPS, drafts=4, right=0)
    took_s, plain_s = stand.run(STEPS, drafts=4, right=4)
    assert plain_s > 1.05 * took_s


def test_drafts_of_a_model_are_paid_elsewhere_also_those_that_were_cut_before_the_step() -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0, drafts=True)
    for _ in range(20):
        controller.observe(make_batch(2, 0), step_s=0.01, compute_s=0.01)
    before = controller._account.balance_s
    assert before is not None
    drafted = Drafted(by_id={"0": [1, 2, 3, 4]})
    controller.observe(make_batch(2, 1), step_s=0.02, compute_s=0.02, drafted=drafted)
    assert controller._account.balance_s == pytest.approx(before + ALLOWANCE * 0.02)
