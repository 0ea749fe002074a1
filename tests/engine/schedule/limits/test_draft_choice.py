"""Drafts of the draft model are made where they save time, and cost next to nothing where they do not."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.engine.drafts import Drafted, DraftRound
from axon.engine.schedule.limits.acceptance import Acceptance
from axon.engine.schedule.limits.cost_model import CostModel
from axon.engine.schedule.limits.draft_choice import CHUNK, Candidate, Choice, DraftCosts, choose, cost_s, expected
from axon.engine.schedule.limits.draft_ledger import FIRST_STEPS, MOST_STEPS, DraftLedger
from axon.engine.schedule.limits.lookup_account import ALLOWANCE

CHEAP = DraftCosts(
    num_streams=1, step_s=10.0, row_s=1.0, round_s=0.5, draft_row_s=0.5, spend_s=1000.0, probe_s=1000.0, most=8
)  # a draft costs a fifth of a token


def with_costs(**changes: float) -> DraftCosts:
    named = {name: getattr(CHEAP, name) for name in DraftCosts.__slots__}
    return DraftCosts(**(named | changes))


def candidate(rate: float, *, num_unseen: int = 1, most: int = 8, num_left: int = 100) -> Candidate:
    return Candidate(rate=rate, num_unseen=num_unseen, most=most, num_left=num_left)


costs = st.builds(
    DraftCosts,
    num_streams=st.integers(1, 16),
    step_s=st.floats(1, 50),
    row_s=st.floats(0.01, 10),
    round_s=st.floats(0.01, 10),
    draft_row_s=st.floats(0.01, 10),
    spend_s=st.floats(0, 500),
    probe_s=st.floats(0, 500),
    most=st.integers(1, 8),
    wait_s=st.floats(0, 10),
)
candidates = st.lists(
    st.builds(
        Candidate,
        rate=st.floats(0, 1),
        num_unseen=st.integers(1, 400),
        most=st.integers(-2, 8),
        num_left=st.integers(1, 500),
    ),
    max_size=16,
)


def spent(found: list[Choice], given: list[Candidate], costs: DraftCosts) -> float:
    """What the choices cost, each stream with its own number of drafts."""
    drafting = [choice for choice in found if choice.num_drafts]
    num_rounds = max((choice.num_drafts for choice in drafting), default=0)
    rows_s = sum(each.num_drafts * (costs.row_s + costs.draft_row_s) for each in drafting)
    first_s = sum(each.chunk - 1 for each in drafting) * costs.draft_row_s
    catching = [each.chunk for each in found if not each.num_drafts]
    catching_s = bool(catching) * costs.round_s + sum(catching) * costs.draft_row_s
    return bool(found) * costs.wait_s + num_rounds * costs.round_s + rows_s + first_s + catching_s


@given(given_=candidates, costs=costs)
def test_what_is_chosen_can_be_paid_for_and_has_room(given_: list[Candidate], costs: DraftCosts) -> None:
    found = choose(given_, costs)
    assert spent(found, given_, costs) <= costs.spend_s + 1e-9
    assert len({choice.index for choice in found}) == len(found)
    for choice in found:
        each = given_[choice.index]
        assert 0 <= choice.num_drafts <= min(each.most, costs.most)
        assert 1 <= choice.chunk <= min(each.num_unseen, CHUNK)
        assert not choice.num_drafts or choice.chunk == each.num_unseen, "a stream that gets drafts is caught up"
    assert sum(choice.chunk for choice in found if not choice.num_drafts) <= CHUNK, "one chunk a step is caught up"


@given(given_=candidates, costs=costs)
def test_several_drafts_are_expected_to_be_faster_than_none(given_: list[Candidate], costs: DraftCosts) -> None:
    drafting = [choice for choice in choose(given_, costs) if choice.num_drafts]
    if len(drafting) > 1 or any(choice.num_drafts > 1 for choice in drafting):  # a single one may be a probe
        gain = sum(expected(given_[choice.index].rate, choice.num_drafts) for choice in drafting)
        step_s = costs.step_s + spent(drafting, given_, costs)
        assert (costs.num_streams + gain) / step_s > costs.num_streams / costs.step_s


@pytest.mark.parametrize(("rate", "fewest", "most"), [(0.99, 8, 8), (0.7, 2, 5), (0.4, 1, 2), (0.1, 1, 1)])
def test_the_better_drafts_are_the_more_are_made(rate: float, fewest: int, most: int) -> None:
    [choice] = choose([candidate(rate)], CHEAP)
    assert fewest <= choice.num_drafts <= most


def test_drafts_that_never_pay_are_not_even_tried() -> None:
    """With many streams a row costs as much as a token."""
    assert choose([candidate(1.0)] * 16, with_costs(num_streams=16, step_s=16.0)) == []


def test_bad_drafts_are_probed_one_at_a_time_and_only_from_what_may_be_spent() -> None:
    given_ = [candidate(0.05, num_unseen=20), candidate(0.02, num_unseen=2), candidate(0.01, num_unseen=9)]
    price = cost_s(1, 1, 2, CHEAP)
    assert choose(given_, with_costs(probe_s=price)) == [Choice(1, 1, 2, is_probe=True)]
    assert choose(given_, with_costs(probe_s=0.99 * price)) == []
    assert choose(given_, with_costs(spend_s=0.99 * price)) == []


def test_streams_whose_drafts_are_bad_get_none_beside_those_that_are_good() -> None:
    found = choose([candidate(0.01), candidate(0.9), candidate(0.02)], with_costs(num_streams=3, step_s=20.0))
    assert [choice.index for choice in found] == [1]


def test_a_long_text_is_caught_up_in_chunks_where_the_rest_of_the_answer_repays_it() -> None:
    long = candidate(0.9, num_unseen=300, num_left=400)
    assert choose([long], CHEAP) == [Choice(0, 0, CHUNK)]
    assert choose([candidate(0.9, num_unseen=CHUNK - 20, num_left=400)], CHEAP) == [Choice(0, 0, CHUNK - 21)]
    short = candidate(0.9, num_unseen=3000, num_left=20)
    assert choose([candidate(0.9), short], with_costs(spend_s=1e9))[0].index == 0
    assert len(choose([candidate(0.9), short], with_costs(spend_s=1e9))) == 1, "it would cost more than it saves"
    assert choose([long], with_costs(spend_s=100.0)) == [], "nobody pays for it yet"
    useless = candidate(0.0, num_unseen=100)
    assert choose([useless], CHEAP) == [Choice(0, 1, 100, is_probe=True)], "else it is caught up again and again"
    assert choose([useless], with_costs(probe_s=20.0)) == [], "what was saved is not spent on probes"


def test_streams_that_do_not_pay_one_by_one_are_caught_up_together() -> None:
    """The device's wait and the draft model's batches cost as much for one stream as for all."""
    costs = with_costs(num_streams=8, step_s=10.0, row_s=0.1, round_s=1.0, draft_row_s=0.01, wait_s=1.0)
    given_ = [candidate(0.9, num_unseen=10 + number, num_left=100) for number in range(30, 38)]
    found = choose(given_, costs)
    assert [choice.chunk for choice in found] == [39, 40, 41, CHUNK - 120], "as many as a chunk has room for"
    assert not any(choice.is_probe or choice.num_drafts for choice in found)
    assert choose(given_[:1], costs) == [Choice(0, 1, 40, is_probe=True)]
    near = [candidate(0.9)] * 8
    assert len(choose(near, costs)) == 8
    beside = choose([*near[:6], *given_[:2]], costs)
    assert [choice.num_drafts > 0 for choice in beside] == [True] * 6 + [False] * 2
    last = choose([*near[:7], given_[0]], costs)
    assert [choice.num_drafts > 0 for choice in last] == [True] * 7 + [False], "one that comes later joins the others"
    assert choose([replace(each, rate=0.05) for each in given_], replace(costs, probe_s=0.0)) == []
    assert choose(given_, replace(costs, spend_s=1.0, probe_s=0.0)) == [], "nobody pays for it yet"
    ending = [replace(each, num_unseen=2000, num_left=2) for each in given_]
    assert choose(ending, replace(costs, probe_s=0.0)) == [], "it would cost more than it saves"


def test_expected_drafts_are_a_geometric_sum() -> None:
    assert expected(0.5, 3) == pytest.approx(0.5 + 0.25 + 0.125)
    assert expected(1.0, 3) == 3
    assert expected(0.0, 3) == 0


# ----- the account over many steps

TARGET = (1.0, 0.2, 0.0)
"""Seconds of a step of the target model: fixed, for each row, for each attended token."""


def run(
    num_steps: int,
    *,
    num_streams: int,
    rate_at: Callable[[int], float],
    draft: tuple[float, float],
    accepts: Callable[[], float],
    first_measured: float = 1.0,
) -> tuple[float, float, int]:
    """Runs streams whose drafts are accepted with a probability that changes; returns the time with drafts, the time
    that as many tokens take without, and how many drafts there were. Costs are exact, but for the first measured."""
    streams = CostModel(TARGET, gain_up=0.2, gain_down=0.5)
    streams.update((1.0, num_streams, 0), TARGET[0] + TARGET[1] * num_streams)
    ledger, known = DraftLedger(most=4), Acceptance()
    took_s = tokens = num_drafted = 0.0
    unseen = 1
    for step in range(num_steps):
        at = ledger.costs(num_streams=num_streams, num_attended=0, streams=streams)
        assert at is not None
        found = choose([candidate(known.rate, num_unseen=unseen)] * num_streams, at)
        drafted, rows, accepted = Drafted(), 0, 0
        if found:
            num_drafts = max(choice.num_drafts for choice in found)
            slow = first_measured if not num_drafted else 1.0
            sizes = [sum(choice.chunk for choice in found), *([len(found)] * max(0, num_drafts - 1))]
            rounds = [(size, slow * (draft[0] + draft[1] * size)) for size in sizes]
            for choice in found:
                good = next((i for i in range(choice.num_drafts) if accepts() >= rate_at(step)), choice.num_drafts)
                rows, accepted = rows + choice.num_drafts, accepted + good
                known.forget(0.98)
                known.learn(num_drafted=choice.num_drafts, num_accepted=good)
            drafted = Drafted(
                is_probe=all(choice.is_probe for choice in found),
                rounds=tuple(DraftRound(num_tokens=size, num_attended=0, seconds=s) for size, s in rounds),
                num_accepted=accepted,
            )
            unseen = 1
        else:
            unseen = min(unseen + 1, 30)
        step_s = TARGET[0] + TARGET[1] * (num_streams + rows)
        ledger.observe(drafted, at, num_drafts=rows, step_s=step_s)
        took_s += step_s + drafted.seconds
        tokens += num_streams + accepted
        num_drafted += rows
    alone_s = tokens * (TARGET[0] + TARGET[1] * num_streams) / num_streams
    return took_s, alone_s, int(num_drafted)


@given(
    num_streams=st.integers(1, 8),
    rates=st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.6, 0.95]), min_size=1, max_size=4),
    draft=st.tuples(st.floats(0.02, 1.0), st.floats(0.01, 0.3)),
    seed=st.randoms(use_true_random=False),
)
def test_drafts_cost_at_most_the_allowance_whatever_is_accepted(
    num_streams: int, rates: list[float], draft: tuple[float, float], seed: object
) -> None:
    """Rates change at any moment; what was saved before may be lost again, but never more, up to a limit."""
    num_steps = 600
    took_s, alone_s, _ = run(
        num_steps,
        num_streams=num_streams,
        rate_at=lambda step: rates[step * len(rates) // num_steps],
        draft=draft,
        accepts=seed.random,  # type: ignore[attr-defined]
    )
    step_s = TARGET[0] + TARGET[1] * num_streams
    dearest_s = 4 * (draft[0] + num_streams * (draft[1] + TARGET[1])) + num_streams * 30 * draft[1]
    assert took_s <= alone_s + ALLOWANCE * took_s + FIRST_STEPS * step_s + dearest_s


def test_drafts_that_are_never_accepted_cost_less_than_two_percent_in_the_long_run() -> None:
    took_s, alone_s, num_drafted = run(
        5000, num_streams=1, rate_at=lambda _: 0.0, draft=(0.2, 0.05), accepts=lambda: 0.5
    )
    assert 10 < num_drafted < 500, "they are tried rarely, but for ever"
    assert took_s / alone_s < 1.02


def test_drafts_that_become_good_are_noticed_and_save_time() -> None:
    took_s, alone_s, _ = run(
        4000, num_streams=1, rate_at=lambda step: 0.9 if step > 2000 else 0.0, draft=(0.1, 0.02), accepts=lambda: 0.5
    )
    assert took_s < 0.8 * alone_s


def test_a_first_batch_that_was_slow_does_not_rule_the_draft_model_out() -> None:
    took_s, alone_s, _ = run(
        8000, num_streams=1, rate_at=lambda _: 0.9, draft=(0.1, 0.02), accepts=lambda: 0.5, first_measured=50.0
    )
    assert took_s < 0.9 * alone_s


def test_what_was_saved_is_kept_up_to_a_limit() -> None:
    streams = CostModel(TARGET, gain_up=0.2, gain_down=0.5)
    streams.update((1.0, 1, 0), 1.2)
    ledger = DraftLedger(most=4)
    for _ in range(500):
        at = ledger.costs(num_streams=1, num_attended=0, streams=streams)
        assert at is not None
        ledger.observe(Drafted(num_accepted=4), at, num_drafts=4, step_s=2.0)
    assert ledger.balance_s == pytest.approx(MOST_STEPS * 1.2)
