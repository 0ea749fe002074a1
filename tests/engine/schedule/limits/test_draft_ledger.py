"""After load has gone a head that pays is asked again soon; one that does not pay costs next to nothing. A device's
drafts are charged as they were measured."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.engine.drafts import Drafted, DraftRound
from axon.engine.schedule.limits.cost_model import CostModel
from axon.engine.schedule.limits.draft_choice import DraftCosts
from axon.engine.schedule.limits.draft_ledger import FIRST_STEPS, DraftLedger
from axon.engine.schedule.limits.learned_controller import LearnedController
from axon.engine.schedule.limits.lookup_account import ALLOWANCE
from tests.engine.schedule.heads_on_machines import Head, Load, Stand
from tests.engine.schedule.limits.test_learned_controller import make_batch, observe
from tests.engine.schedule.machines import NEOVERSE, XEON, Day, Machine
from tests.long import examples

HEAD = Head(round_s=0.0008, row_s=0.00008, rate=0.7)
USELESS = Head(round_s=0.0008, row_s=0.00008, rate=0.0)
SOON = 40
"""Tokens of a stream after which a head that pays is asked again, at the latest."""
machines = st.sampled_from([XEON, NEOVERSE])
days = st.builds(
    Day,
    jitter=st.floats(0.0, 0.1),
    slow_factor=st.floats(1.0, 3.0),
    slow_share=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 1000),
)


@settings(max_examples=examples(12), deadline=None)
@given(machine=machines, day=days, streams=st.integers(3, 16), steps=st.integers(20, 300))
def test_a_head_that_pays_is_asked_soon_after_load_has_gone(
    machine: Machine, day: Day, streams: int, steps: int
) -> None:
    stand = Stand(machine, day, HEAD)
    stand.run(Load(streams=1, steps=150))
    loaded = stand.run(Load(streams=streams, steps=steps))
    after = stand.run(Load(streams=1, steps=150))
    assert loaded.num_drafted == 0
    assert after.longest <= SOON


def test_a_head_whose_rounds_were_delayed_before_the_load_is_asked_soon_behind_it() -> None:
    """The first rounds of all count most."""
    stand = Stand(XEON, Day(), replace(HEAD, round_s=30 * HEAD.round_s, row_s=30 * HEAD.row_s))
    stand.run(Load(streams=1, steps=20))
    stand.head = HEAD
    stand.run(Load(streams=16, steps=100))
    assert stand.run(Load(streams=1, steps=300)).longest <= SOON


@settings(max_examples=examples(12), deadline=None)
@given(machine=machines, day=days, streams=st.integers(3, 16))
def test_a_useless_head_costs_two_percent_at_most_beside_its_first_tries(
    machine: Machine, day: Day, streams: int
) -> None:
    stand = Stand(machine, day, USELESS)
    loads = [Load(streams=1, steps=250), Load(streams=streams, steps=100), Load(streams=1, steps=400)]
    told = [stand.run(load) for load in loads]
    first_s = 1.2 * FIRST_STEPS * day.slow_factor * machine.step_s(make_batch(streams=1))
    assert sum(each.num_drafted for each in told) > 0
    assert sum(each.seconds for each in told) <= 1.02 * sum(each.plain_s for each in told) + first_s


@pytest.mark.parametrize("streams", [1, 16])
def test_a_machine_that_is_slow_at_times_does_not_change_what_a_row_costs_beside_the_rest(streams: int) -> None:
    controller = LearnedController(max_prefill_tokens=100, max_slowdown=2.0, drafts=True)
    for number in (1, 4, 16) * 40:
        observe(controller, make_batch(streams=number), 0.005 + 0.001 * number)
    fixed_s, row_s, _ = controller._streams.costs
    for swing in range(200):
        observe(controller, make_batch(streams=streams), (0.005 + 0.001 * streams) * (4 if swing % 20 < 10 else 1))
    later_s, later_row_s, _ = controller._streams.costs
    assert later_row_s / later_s == pytest.approx(row_s / fixed_s, rel=0.2)


STEP_S, STREAMS, LENGTH, WAIT_S = 0.004, 4, 100, 0.0003
DRAFTING = DraftRound(num_tokens=STREAMS, num_attended=STREAMS * LENGTH, seconds=0.0005)
CATCHING_UP = DraftRound(num_tokens=1000, num_attended=1000 * LENGTH, seconds=0.003, is_chunk=True)


def costs_of(ledger: DraftLedger) -> DraftCosts:
    streams = CostModel((1.0, 0.006, 8e-6), gain_up=0.2, gain_down=0.5)
    streams.update((1.0, STREAMS, STREAMS * LENGTH), STEP_S)
    found = ledger.costs(num_streams=STREAMS, num_attended=STREAMS * LENGTH, streams=streams, wait_s=WAIT_S)
    assert found is not None
    return found


def charged(ledger: DraftLedger, *rounds: DraftRound, num_drafts: int = 0, step_s: float = STEP_S) -> float:
    """Takes in a step of whose drafts none was accepted; returns the seconds that the account has paid for them."""
    before = ledger.balance_s
    ledger.observe(Drafted(rounds=rounds), costs_of(ledger), num_drafts=num_drafts, step_s=step_s)
    assert ledger.balance_s is not None
    return (FIRST_STEPS * STEP_S if before is None else before) + ALLOWANCE * step_s - ledger.balance_s


def test_a_devices_batches_that_catch_up_have_costs_of_their_own() -> None:
    ledger = DraftLedger(most=4, on_device=True)
    charged(ledger, DRAFTING)
    assert costs_of(ledger).chunk_s is None, "none is measured yet"
    for _ in range(20):
        charged(ledger, DRAFTING)
        charged(ledger, CATCHING_UP)
    costs = costs_of(ledger)
    assert costs.round_s + STREAMS * costs.draft_row_s == pytest.approx(DRAFTING.seconds)
    assert costs.seen_s(1000) == pytest.approx(CATCHING_UP.seconds + WAIT_S + 7 * (costs.chunk_s or 0.0) + 7 * WAIT_S)


def test_a_devices_first_delays_are_neither_charged_nor_learned_and_later_ones_are_charged_up_to_a_bound() -> None:
    ledger, delay = DraftLedger(most=4, on_device=True), replace(DRAFTING, seconds=1.0)
    charged(ledger, DRAFTING)
    for _ in range(8):
        assert charged(ledger, delay) == pytest.approx(DRAFTING.seconds)
    assert costs_of(ledger).round_s < DRAFTING.seconds
    assert charged(ledger, delay) == pytest.approx(16 * STEP_S)
    assert costs_of(ledger).round_s > DRAFTING.seconds


def test_what_drafts_add_to_a_devices_step_is_charged_as_measured_and_on_a_cpu_as_predicted() -> None:
    device, cpu = DraftLedger(most=4, on_device=True), DraftLedger(most=4)
    predicted_s = 4 * costs_of(cpu).row_s
    assert predicted_s < STEP_S / 2
    assert charged(cpu, num_drafts=4, step_s=2 * STEP_S) == pytest.approx(predicted_s)
    assert charged(device, num_drafts=4, step_s=2 * STEP_S) == pytest.approx(STEP_S)
    assert charged(device, num_drafts=4, step_s=1000 * STEP_S) == pytest.approx(16 * STEP_S)


def test_what_drafts_add_to_a_devices_step_is_learned_as_a_fixed_part_and_a_part_for_each() -> None:
    ledger, fixed_s, each_s = DraftLedger(most=4, on_device=True), STEP_S / 4, STEP_S / 100
    for number in range(600):
        num_drafts = (4, 16)[number % 2]
        charged(ledger, num_drafts=num_drafts, step_s=STEP_S + fixed_s + num_drafts * each_s)
    costs = costs_of(ledger)
    assert costs.row_s == pytest.approx(each_s, rel=0.1)
    assert costs.wait_s == pytest.approx(WAIT_S + fixed_s, rel=0.1)
