"""A turn's transitions: it is opened once and ends once."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.billing.cost import Rates
from axon.domain.billing.ledger import Ledger
from axon.domain.billing.usage import Usage
from axon.domain.failure import Failure
from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.session.erasure import without_words
from axon.domain.turn import TurnState, ended, opened, so_far, supersedes
from tests.domain.strategies import cut_chunk, cuts, make_job, streams

TERMINAL = ["completed", "failed", "cancelled", "expired"]


def test_an_opened_turn_is_its_jobs() -> None:
    job = make_job()
    turn = opened(job)
    assert (turn.id, turn.tenant, turn.opened_at, turn.job) == (job.id, job.tenant, job.created, job)
    assert (turn.state, turn.ended_at, turn.tokens) == (TurnState.OPENED, None, ())


@pytest.mark.parametrize("state", TERMINAL)
def test_a_turn_ends_in_the_state_of_its_terminal_chunk(state: str) -> None:
    last = Chunk(first=1, epoch=1, terminal=state, code="why", message="because")
    turn = ended(opened(make_job()), (last,), at=9.0)
    assert (turn.state, turn.ended_at, turn.code, turn.message) == (TurnState(state), 9.0, "why", "because")


@pytest.mark.parametrize("state", TERMINAL)
def test_a_turn_that_has_ended_stays_as_it_is(state: str) -> None:
    turn = ended(opened(make_job()), (Chunk(first=1, epoch=1, terminal=state),), at=9.0)
    assert ended(turn, (Chunk(first=1, epoch=2, terminal="failed", code="late"),), at=10.0) is turn


def test_an_unknown_terminal_state_is_refused() -> None:
    with pytest.raises(ValueError, match="paused"):
        ended(opened(make_job()), (Chunk(first=1, epoch=1, terminal="paused"),), at=9.0)


def test_every_end_outranks_the_opening_and_no_other_end() -> None:
    assert {state.rank for state in TurnState if state.terminal} == {1}
    assert TurnState.OPENED.rank == 0
    assert [state for state in TurnState if not state.terminal] == [TurnState.OPENED]


def test_usage_counts_the_tokens_of_all_choices() -> None:
    tokens = (Token(0, 5, "a"), Token(1, 6, "b"), Token(0, 7, "c"))
    chunk = Chunk(first=1, epoch=1, tokens=tokens, ends=(End(0, "stop"), End(1, "length")), terminal="completed")
    turn = ended(opened(make_job(prompt_ids=(1, 2))), (replace(chunk, cached=1),), at=9.0)
    assert turn.usage == Usage(prompt_tokens=2, cached_tokens=1, output_tokens=3)
    assert turn.usage.total_tokens == 5


@given(streams(), cuts())
def test_a_turn_is_the_same_however_its_stream_was_cut(stream: Chunk, places: list[int]) -> None:
    turn = ended(opened(make_job()), (stream,), at=9.0)
    assert ended(opened(make_job()), cut_chunk(stream, places), at=9.0) == turn


@given(streams())
def test_the_whole_answer_as_one_chunk_says_what_the_stream_said(stream: Chunk) -> None:
    chunk = ended(opened(make_job()), (stream,), at=9.0).chunk()
    assert chunk == replace(stream, epoch=0, extra={})


def test_an_opened_turn_as_a_chunk_has_not_ended() -> None:
    assert opened(make_job()).chunk() == Chunk(first=1, epoch=0)


def test_what_was_said_so_far_is_no_end() -> None:
    tokens = (Token(0, 5, "a"), Token(1, 6, "b"))
    turn = so_far(make_job(prompt_ids=(1, 2)), Chunk(first=1, epoch=3, tokens=tokens, cached=1))
    assert (turn.state, turn.ended_at, turn.tokens) == (TurnState.OPENED, None, tokens)
    assert turn.usage == Usage(prompt_tokens=2, cached_tokens=1, output_tokens=2)


def test_more_supersedes_less_and_an_end_supersedes_both_for_good() -> None:
    job = make_job()
    one, two = (Chunk(first=1, epoch=1, tokens=(Token(0, 5, "a"),) * count) for count in (1, 2))
    stages = [
        opened(job),
        so_far(job, one),
        so_far(job, two),
        ended(opened(job), (replace(one, terminal="failed"),), at=9.0),
    ]
    for older, stored in enumerate(stages):
        for newer, new in enumerate(stages):
            assert supersedes(new, stored) == (newer > older)


RATES = Rates(prompt=1_000_000, output=7_000_000, currency="EUR")


@given(st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(0, 3), max_size=6))
def test_after_a_restore_a_real_end_is_never_lost_nor_billed_twice(before: list[int], after: list[int]) -> None:
    """Records come in any order, late and twice; in between a restore ends the turn if it has not ended."""
    job = make_job(price="price_1", rates=RATES)
    one, two = (Chunk(first=1, epoch=1, tokens=(Token(0, 5, "a"),) * count) for count in (1, 2))
    real = ended(opened(job), (replace(two, terminal="completed", ledger=Ledger(attempts=1)),), at=9.0)
    records = [opened(job), so_far(job, one), so_far(job, two), real]
    stored = None
    billed = []
    for step in (*before, None, *after):
        if step is not None:
            new = records[step]
        elif stored is not None and not stored.state.terminal:
            unbegun = Chunk(first=1, epoch=0, terminal="cancelled", code=Failure.RESTORED, ledger=Ledger())
            new = ended(stored, (unbegun,), at=8.0)
        else:
            continue
        if supersedes(new, stored):
            stored = new
            billed += [new.cost] if new.state.terminal and new.cost and new.cost.amount.total_nanos else []
    has_ended = 3 in before or 3 in after
    assert (stored == real) == has_ended
    assert billed == ([real.cost] if has_ended else [])
    if stored is not None and not has_ended:
        assert stored.cost is None or not stored.cost.amount.total_nanos


def test_the_choices_of_several_prompts_come_prompt_by_prompt() -> None:
    job = make_job(prompt_ids=(1, 2), more_prompts=((3,), (4, 5, 6)), choices=6)
    assert [job.prompt_of(choice) for choice in range(6)] == [(1, 2)] * 2 + [(3,)] * 2 + [(4, 5, 6)] * 2
    assert [make_job(choices=2).prompt_of(choice) for choice in range(2)] == [(1, 2, 3)] * 2


def test_usage_counts_the_tokens_of_all_prompts() -> None:
    job = make_job(prompt_ids=(1, 2), more_prompts=((3,), (4, 5, 6)), choices=3)
    turn = ended(opened(job), (Chunk(first=1, epoch=1, tokens=(Token(0, 5, "a"),), terminal="completed"),), at=9.0)
    assert turn.usage == Usage(prompt_tokens=6, output_tokens=1)


def test_without_words_no_prompt_is_left() -> None:
    turn = without_words(opened(make_job(more_prompts=((3,),), choices=2)))
    assert (turn.job.prompt_ids, turn.job.more_prompts, turn.job.purged) == ((), (), True)
