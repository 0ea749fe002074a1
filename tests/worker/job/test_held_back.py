"""Tokens that are held back, and jobs that are cancelled or stopped before all of them were sent."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.domain.turn import TurnState
from axon.worker.job.running import Terminal
from tests.worker.job.builders import TOKENIZER, joined, make_running, push, run, texts


@settings(deadline=None)
@given(rng=st.randoms(use_true_random=False), text=texts, choices=st.integers(1, 3))
def test_a_stream_that_is_held_back_is_told_the_same_tokens_and_ends_after_the_last(
    rng: Random, text: str, choices: int
) -> None:
    ids = TOKENIZER.encode(text) or [65]
    running = make_running(choices=choices)
    running.limit, told = 0, []
    left = {choice: list(ids) for choice in range(choices)}
    while not running.end_logged:
        moves = [choice for choice, rest in left.items() if rest]
        if moves and rng.random() < 0.5:
            rest = left[choice := rng.choice(moves)]
            push(running, rest.pop(0), None if rest else "stop", choice=choice)
        else:
            running.limit = min(running.limit + rng.randint(0 if moves else 1, 5), choices * len(ids))
        chunk = running.pending()
        assert chunk is None or chunk.last <= max(running.limit, 0)
        if chunk is not None and rng.random() < 0.7:
            assert bool(chunk.terminal) == (chunk.last == choices * len(ids))
            told.append(chunk)
            running.sent, running.end_logged = chunk.last, bool(chunk.terminal)
    assert [token.id for token in joined(told).tokens] == [token_id for token_id in ids for _ in range(choices)]
    assert {end.choice for end in joined(told).ends} == set(range(choices))


@pytest.mark.parametrize("finish", [None, "stop"])
def test_what_is_held_back_at_an_end_from_outside_is_never_told(finish: str | None) -> None:
    running = make_running()
    running.limit = 2
    for place, token_id in enumerate([65, 66, 67, 68]):
        push(running, token_id, finish if place == 3 else None)
    running.end(TurnState.CANCELLED)
    chunk = running.pending()
    assert chunk is not None
    assert ([token.id for token in chunk.tokens], chunk.ends, chunk.terminal) == ([65, 66], (), "cancelled")


@pytest.mark.parametrize("finish", [None, "stop"])
def test_a_cancelled_job_ends_with_what_the_log_has_and_the_rest_is_wasted(finish: str | None) -> None:
    running = make_running()
    push(running, 65)
    running.sent = 1
    for place, token_id in enumerate([66, 67]):
        push(running, token_id, finish if place == 1 else None)
    late = running.pending()
    assert late is not None  # the log refuses it
    running.cancel()
    chunk = running.pending()
    assert chunk is not None
    assert chunk.ledger is not None
    assert (chunk.first, chunk.tokens, chunk.ends, chunk.terminal) == (2, (), (), "cancelled")
    assert (chunk.ledger.emitted, chunk.ledger.wasted) == (1, 2)
    assert [token.id for token in running.whole().tokens] == [65]


def test_a_job_asks_the_log_whether_it_is_to_go_on_although_it_has_nothing_to_tell() -> None:
    running = make_running()
    running.must_ask = True
    chunk = running.pending()
    assert chunk is not None
    assert (chunk.first, chunk.tokens, chunk.ends, chunk.terminal) == (1, (), (), "")


@pytest.mark.parametrize("limit", [None, 2, 0])
def test_a_stopped_job_is_complete_with_what_may_be_told_and_its_length_is_its_end(limit: int | None) -> None:
    running = make_running(choices=2)
    running.limit = limit
    push(running, 65, choice=0)
    push(running, 65, choice=1)
    push(running, 66, "stop", choice=0)
    running.stop("why", "because")
    chunk = running.pending()
    assert chunk is not None
    num_told = 3 if limit is None else limit
    assert (len(chunk.tokens), chunk.terminal, chunk.code) == (num_told, TurnState.COMPLETED, "why")
    reasons = {end.choice: end.reason for end in chunk.ends}
    assert reasons == {0: "stop" if limit is None else "length", 1: "length"}


def test_a_job_that_has_ended_is_not_stopped() -> None:
    running = run(make_running(), [65, 66], "stop")
    running.stop("why", "because")
    assert running.terminal == Terminal(TurnState.COMPLETED)
