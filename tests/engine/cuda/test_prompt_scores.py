"""What the device computes of given tokens is what the host's sampler says of them. Needs no GPU."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.domain.sampling import Sampling
from axon.engine.batch import Draw, Drawn, Span
from axon.engine.cuda.sample.prompt_scores import ROWS, ScoredRows, score, score_rows
from axon.engine.cuda.step.flight import CudaFlight
from axon.engine.sample.sampler import sample

WIDTH = 40


def make_draw(token: int | None, count: int = 0) -> Draw:
    sampling = Sampling(max_tokens=1, temperature=0.0, logprobs=count)
    return Draw(sampling=sampling, seed=0, choice=0, position=0, given=token)


def make_span(arrival: int, given: list[int], count: int = 0, *, is_drawn: bool = False) -> Span:
    return Span(
        id=str(arrival),
        first=0,
        token_ids=(0,) * (len(given) + is_drawn),
        block_ids=(0,),
        draw=make_draw(None) if is_drawn else None,
        scores=tuple(make_draw(token, count) for token in given),
        arrival=arrival,
    )


def assert_same(ours: list[Drawn], theirs: list[Drawn]) -> None:
    assert [replace(each, logprob=None, top=()) for each in ours] == [
        replace(each, logprob=None, top=()) for each in theirs
    ]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.logprob == pytest.approx(other.logprob, abs=1e-6)
        assert [id for id, _ in mine.top] == [id for id, _ in other.top]
        assert [each for _, each in mine.top] == pytest.approx([each for _, each in other.top], abs=1e-6)


equal_often = st.sampled_from([-3.0, -0.5, -0.0, 0.0, 0.5, 2.0, float("-inf")])
numbers = st.lists(equal_often | st.floats(-30, 30, width=32), min_size=WIDTH - 1, max_size=WIDTH - 1)


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(numbers, st.integers(0, WIDTH - 1), st.integers(0, WIDTH)), min_size=1, max_size=4),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_logprobs_ranks_and_likely_tokens_are_the_samplers(
    rows: list[tuple[list[float], int, int]], dtype: torch.dtype
) -> None:
    logits = torch.tensor([[*row, 3.0] for row, _, _ in rows]).to(dtype)
    spans = [make_span(index, [token], count) for index, (_, token, count) in enumerate(rows)]
    tokens = torch.tensor([token for _, token, _ in rows], dtype=torch.int32)
    found = ScoredRows(spans, score(logits, tokens, max(count for *_, count in rows))).by_arrival()
    draws = [draw for span in spans for draw in span.scores]
    assert_same([found[index][0] for index in range(len(rows))], sample(logits.float(), draws))


def test_more_likely_tokens_than_there_are_is_all_of_them() -> None:
    [drawn] = ScoredRows(
        [make_span(0, [1], 20)], score(torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([1]), 20)
    ).by_arrival()[0]
    assert [id for id, _ in drawn.top] == [2, 1, 0]


@pytest.mark.parametrize("leads", [True, False])
def test_logits_are_made_a_few_rows_at_a_time_and_each_row_is_its_own(leads: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    spans = [make_span(0, list(range(30)), 2), make_span(1, [], is_drawn=True), make_span(2, [7] * (2 * ROWS), 1)]
    hidden = torch.randn(30 + 2 * ROWS, WIDTH, generator=generator)
    given_ids = torch.tensor([draw.given for span in spans for draw in span.scores], dtype=torch.int32)
    heights: list[int] = []

    def logits_of(rows: torch.Tensor) -> torch.Tensor:
        heights.append(len(rows))
        return rows * 2

    found = score_rows(spans, hidden, {"given": given_ids}, logits_of, leads=leads)
    assert (max(heights), sum(heights)) == (ROWS, len(hidden)), "every rank takes part in every piece"
    assert (found is not None) == leads
    if found is not None:
        results = found.by_arrival()
        draws = [draw for span in spans for draw in span.scores]
        assert_same([*results[0], *results[2]], sample(hidden * 2, draws))
        assert {len(each.top) for each in results[0]} == {2}
        assert {len(each.top) for each in results[2]} == {1}


def test_a_flight_lands_each_spans_scores_before_its_draw() -> None:
    spans = (
        make_span(0, [1, 2], is_drawn=True),
        make_span(1, []),
        make_span(2, [3, 4]),
        make_span(3, [], is_drawn=True),
    )
    logits = torch.zeros(1, WIDTH)
    halves = [
        ScoredRows([replace(spans[2], scores=spans[2].scores[:1])], score(logits, torch.tensor([3]), 0)),
        ScoredRows(
            [spans[0], replace(spans[2], scores=spans[2].scores[1:])],
            score(logits.expand(3, -1), torch.tensor([1, 2, 4]), 0),
        ),
    ]
    flight = CudaFlight(lambda: lambda: [20, 10], [1, 0], [], {0: 1, 3: 0}, spans, halves)
    assert [each.token for each in flight.land()] == [1, 2, 10, 3, 4, 20]
