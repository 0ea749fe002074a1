"""A prompt's chunks fit into the slowdown that the streams beside it are to bear."""

import pytest

from axon.engine.batch import Batch, Draw, Span
from axon.engine.pace import Pace
from tests.engine.builders import make_add

SAMPLING = make_add().sampling


def make_batch(*, streams: int, prompt: int = 0) -> Batch:
    draw = Draw(sampling=SAMPLING, seed=0, choice=0, position=1)
    spans = [Span(id=str(n), first=9, token_ids=(1,), block_ids=(n,), draw=draw) for n in range(streams)]
    if prompt:
        spans.append(Span(id="prompt", first=0, token_ids=(1,) * prompt, block_ids=(99,)))
    return Batch(tuple(spans))


@pytest.mark.parametrize(("token_s", "expected"), [(0.001, 20), (0.0005, 40), (0.1, 1), (0.00001, 100)])
def test_the_chunk_settles_where_a_step_takes_as_much_longer_as_it_may(token_s: float, expected: int) -> None:
    pace = Pace(max_prefill_tokens=100, max_slowdown=2.0)
    for _ in range(5):
        pace.observe(make_batch(streams=4), 0.02)
    for _ in range(60):
        num_tokens = pace.num_prefill_tokens
        pace.observe(make_batch(streams=4, prompt=num_tokens), 0.02 + num_tokens * token_s)
    assert abs(pace.num_prefill_tokens - expected) <= 1


def test_before_it_has_seen_anything_it_is_careful() -> None:
    assert Pace(max_prefill_tokens=100, max_slowdown=2.0).num_prefill_tokens == 8
    assert Pace(max_prefill_tokens=3, max_slowdown=2.0).num_prefill_tokens == 3


def test_a_step_without_streams_teaches_nothing() -> None:
    pace = Pace(max_prefill_tokens=100, max_slowdown=2.0)
    pace.observe(make_batch(streams=1), 0.02)
    pace.observe(make_batch(streams=0, prompt=50), 0.0)
    assert pace.num_prefill_tokens == 8


def test_a_step_that_was_quick_by_chance_does_not_let_in_more_than_the_most() -> None:
    pace = Pace(max_prefill_tokens=100, max_slowdown=2.0)
    pace.observe(make_batch(streams=1), 0.02)
    pace.observe(make_batch(streams=1, prompt=8), 0.001)
    assert pace.num_prefill_tokens <= 100
