"""The tokens of a step: one for every running sequence, the rest in order, and never more than there are."""

from hypothesis import given
from hypothesis import strategies as st

from axon.engine.batch import Draw, Span
from axon.engine.schedule.budget import TokenBudget
from axon.engine.schedule.limits.controller import StepLimits
from axon.engine.schedule.policy import Rank
from axon.engine.schedule.scoring import MAX_SCORED_TOKENS
from axon.engine.schedule.sequence import Sequence
from axon.engine.schedule.slot_queue import Grant
from tests.engine.builders import make_add


def make_sequence(pending: int, arrival: int = 0, *, is_scored: bool = False) -> Sequence:
    add = make_add(str(arrival), prompt=pending, logprobs=0 if is_scored else None, prompt_logprobs=is_scored)
    return Sequence(add, arrival, 4, "", 100, 1000)


def make_budget(tokens: int, prefill: int = 100) -> TokenBudget:
    return TokenBudget(tokens, StepLimits(max_prefill_tokens=prefill), max_scored_tokens=MAX_SCORED_TOKENS)


def rank(sequence: Sequence) -> Rank:
    return (sequence.arrival,)


def shares(budget: TokenBudget, ready: list[Sequence], grants: list[Grant] | None = None) -> dict[str, int]:
    return budget.shares(ready, grants or [], rank=rank, num_to_compute=lambda sequence: sequence.num_pending)


def test_every_stream_has_its_token_and_the_prompts_the_rest_in_order() -> None:
    ready = [make_sequence(1, 0), make_sequence(9, 1), make_sequence(9, 2)]
    assert shares(make_budget(16), ready) == {"0": 1, "1": 9, "2": 6}


def test_beside_streams_prompts_have_no_more_than_the_limit() -> None:
    ready = [make_sequence(1, 0), make_sequence(9, 1), make_sequence(9, 2)]
    assert shares(make_budget(16, prefill=5), ready) == {"0": 1, "1": 4, "2": 1}
    assert shares(make_budget(16, prefill=5), ready[1:]) == {"1": 9, "2": 7}


def test_beside_streams_prompts_pause_for_a_step_whose_limit_is_0() -> None:
    ready = [make_sequence(1, 0), make_sequence(9, 1), make_sequence(9, 2)]
    assert shares(make_budget(16, prefill=0), ready) == {"0": 1}
    assert shares(make_budget(16, prefill=0), ready[1:]) == {"1": 9, "2": 7}, "not when there is nobody to pause for"


def test_what_one_that_starts_needs_is_kept_from_those_behind_it() -> None:
    running, entering = make_sequence(20, 1), make_sequence(6, 0)
    assert shares(make_budget(16), [running], [Grant(entering)]) == {"1": 10}
    late = make_sequence(6, 2)
    assert shares(make_budget(16), [running], [Grant(late)]) == {"1": 16}
    assert shares(make_budget(16), [running], [Grant(late, is_due=True)]) == {"1": 10}, "whatever its rank"


def test_no_more_tokens_are_scored_than_a_step_has_rows_for() -> None:
    ready = [make_sequence(90, 0, is_scored=True), make_sequence(90, 1, is_scored=True), make_sequence(90, 2)]
    assert shares(make_budget(300), ready) == {"0": MAX_SCORED_TOKENS, "1": 1, "2": 90}


def test_drafts_are_no_prompt_tokens() -> None:
    draw = Draw(sampling=make_add().sampling, seed=0, choice=0, position=0)
    stream = Span(id="a", first=9, token_ids=(1, 2, 3), block_ids=(0,), draw=draw, drafts=(draw, draw))
    chunk = Span(id="b", first=0, token_ids=(1, 2, 3, 4), block_ids=(1,))
    assert make_budget(16, prefill=8).left_after([stream, chunk]) == 8 - 4
    assert make_budget(16, prefill=8).left_after([chunk]) == 12
    assert make_budget(8, prefill=8).left_after([stream, chunk]) == 1


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(8, 60), st.integers(1, 60), st.integers(0, 30))
def test_shares_fit_into_the_budget_and_nobody_goes_without(
    pending: list[int], tokens: int, prefill: int, entering: int
) -> None:
    ready = [make_sequence(each, index) for index, each in enumerate(pending)]
    grants = [Grant(make_sequence(entering, 99), is_due=True)] if entering else []
    got = shares(make_budget(tokens, prefill), ready, grants)
    assert sum(got.values()) <= tokens
    assert all(1 <= got[each.id] <= each.num_pending for each in ready)
    if 1 in pending:
        prompts = [each.id for each in ready if each.num_pending > 1]
        assert sum(got[id] for id in prompts) <= max(prefill, len(prompts))
