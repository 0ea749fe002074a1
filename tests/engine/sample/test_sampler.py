"""Sampling: greedy, penalised, cut, drawn; and the same draw gives the same token."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.engine.sample import sampler, truncate
from axon.engine.sample.uniform import uniform
from tests.engine.sample.builders import SAMPLERS, Sample, make_draw, tokens_of
from tests.engine.sample.slow_sampler import distribution

CHI_SQUARE_999 = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52, 6: 22.46, 7: 24.32, 8: 26.12, 9: 27.88}
"""By degrees of freedom: what one true distribution in a thousand exceeds."""


def counts_of(sample: Sample, logits: list[float], count: int, **draw: Any) -> npt.NDArray[np.int64]:
    rows = np.tile(np.array(logits, dtype=np.float32), (count, 1))
    first = make_draw(**draw)
    tokens = tokens_of(sample(rows, [replace(first, position=position) for position in range(count)]))
    return np.bincount(tokens, minlength=len(logits))


def test_greedy_takes_the_lowest_id_among_equals(sample: Sample) -> None:
    logits = torch.tensor([[0.0, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 2.0]])
    assert tokens_of(sample(logits, [make_draw(temperature=0.0)] * 2)) == [1, 0]


SAMPLINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.6},
    {"temperature": 1.7, "top_k": 5},
    {"top_p": 0.8},
    {"min_p": 0.15},
    {"temperature": 1.3, "top_k": 7, "top_p": 0.9, "min_p": 0.02},
    {"repetition_penalty": 1.4, "presence_penalty": 0.5, "frequency_penalty": 0.3, "top_p": 0.95},
    {"logit_bias": ((3, 2.0), (0, -1.5)), "top_k": 6},
]


def follows_the_softmax(sample: Sample, sampling: dict[str, Any]) -> bool:
    """Whether 20,000 draws are spread as the exact distribution says, by a chi-square test."""
    logits = np.random.default_rng(5).normal(0, 1.5, 10).astype(np.float32).tolist()
    context: dict[str, Any] = {"prompt": (1, 4), "output": (2, 2, 7)}
    count = 20_000
    seen = counts_of(sample, logits, count, seed=42, **context, **sampling)
    expected = count * np.array(distribution(logits, make_draw(**context, **sampling)))
    kept = expected > 0
    if seen[~kept].sum():
        return False
    statistic = float(((seen[kept] - expected[kept]) ** 2 / expected[kept]).sum())
    return kept.sum() == 1 or statistic < CHI_SQUARE_999[int(kept.sum()) - 1]


@pytest.mark.long
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
def test_twenty_thousand_draws_follow_the_exact_softmax(sample: Sample, sampling: dict[str, Any]) -> None:
    assert follows_the_softmax(sample, sampling)


def forget(**names: Any) -> Callable[..., Any]:
    """The same cut, blind to these."""
    return lambda scores, weights, sampling: truncate.kept_ids(scores, weights, replace(sampling, **names))


WIDEN = sampler._widen
MUTANTS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "a temperature 5 % off": ("_widen", lambda rows, indices: WIDEN(rows, indices) * 1.05, {"temperature": 0.6}),
    "numbers that lean to one side": ("uniform", lambda *key: uniform(*key) ** 1.1, {}),
    "numbers of a coarse grain": ("uniform", lambda *key: int(uniform(*key) * 32) / 32, {}),
    "the same number for all positions": ("uniform", lambda seed, choice, position: uniform(seed, choice, 0), {}),
    "no top-k": ("kept_ids", forget(top_k=0), {"temperature": 1.7, "top_k": 5}),
    "no top-p": ("kept_ids", forget(top_p=1.0), {"top_p": 0.8}),
    "no min-p": ("kept_ids", forget(min_p=0.0), {"min_p": 0.15}),
    "one token too few": ("kept_ids", lambda *each: truncate.kept_ids(*each)[:-1], {"temperature": 1.7, "top_k": 5}),
    "no penalties": ("adjust", lambda scores, draws: None, {"repetition_penalty": 1.4, "frequency_penalty": 0.3}),
}


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_sampler_would_be_caught(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, wrong, sampling = MUTANTS[mutant]
    assert follows_the_softmax(SAMPLERS["numpy"], sampling)
    monkeypatch.setattr(sampler, name, wrong)
    assert not follows_the_softmax(SAMPLERS["numpy"], sampling)


ids = st.integers(0, 11)
samplings = st.fixed_dictionaries(
    {
        "temperature": st.sampled_from([0.0, 0.3, 1.0, 2.5]),
        "top_k": st.integers(0, 14),
        "top_p": st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
        "min_p": st.sampled_from([0.0, 0.05, 0.5, 1.0]),
        "presence_penalty": st.sampled_from([0.0, 0.5, -1.0]),
        "frequency_penalty": st.sampled_from([0.0, 0.25, -0.5]),
        "repetition_penalty": st.sampled_from([1.0, 1.5, 0.5]),
        "logit_bias": st.lists(st.tuples(st.integers(0, 80), st.integers(-5, 5)), max_size=3).map(tuple),
        "output": st.lists(ids, max_size=5).map(tuple),
        "prompt": st.lists(ids, max_size=5).map(tuple),
        "banned": st.lists(ids, max_size=2).map(tuple),
    }
)
logit_rows = st.lists(st.integers(-12, 12).map(lambda n: n / 4), min_size=12, max_size=12)


@settings(deadline=None)
@given(logit_rows, samplings, st.integers(0, 1000))
def test_a_choice_equals_the_slow_obvious_one(logits: list[float], options: dict[str, Any], position: int) -> None:
    draw = make_draw(position, **options)
    [drawn] = SAMPLERS["numpy"](np.array([logits], dtype=np.float32), [draw])
    probabilities = distribution(logits, draw)
    number = uniform(draw.seed, draw.choice, draw.position)
    below = sum(probabilities[: drawn.token])
    assert probabilities[drawn.token] > 0
    assert below - 1e-9 <= number <= below + probabilities[drawn.token] + 1e-9


@settings(deadline=None)
@given(rows=st.lists(st.tuples(logit_rows, samplings), min_size=1, max_size=6), count=st.integers(0, 3))
def test_a_row_is_drawn_the_same_alone_and_among_others(
    sample: Sample, rows: list[tuple[list[float], dict[str, Any]]], count: int
) -> None:
    logits = torch.tensor([row for row, _ in rows]) * 0.77
    draws = [make_draw(index, logprobs=count, **options) for index, (_, options) in enumerate(rows)]
    before = logits.clone()
    together = sample(logits, draws)
    assert together == [sample(logits[row : row + 1], [draws[row]])[0] for row in range(len(rows))]
    assert torch.equal(logits, before), "the logits are the runner's"


@settings(deadline=None)
@given(logits=logit_rows, token=ids, count=st.integers(0, 12))
def test_a_given_token_has_its_place_in_the_ranking(
    sample: Sample, logits: list[float], token: int, count: int
) -> None:
    token %= len(logits)
    ranking = sorted(range(len(logits)), key=lambda id: (-logits[id], id))
    [drawn] = sample(torch.tensor([logits]), [replace(make_draw(logprobs=count), given=token)])
    assert (drawn.token, drawn.rank) == (token, 1 + ranking.index(token))
    assert [id for id, _ in drawn.top] == ranking[:count]
    [chosen] = sample(torch.tensor([logits]), [make_draw(logprobs=count)])
    assert chosen.rank is None


def test_a_row_of_a_large_vocabulary_is_drawn_the_same_alone_and_among_others(sample: Sample) -> None:
    logits = torch.randn(7, 5003, generator=torch.Generator().manual_seed(0)) * 3
    draws = [
        make_draw(row, temperature=1 + row % 3, top_p=(0.97, 1.0)[row % 2], top_k=row * 700, logprobs=3)
        for row in range(7)
    ]
    alone = [sample(logits[row : row + 1], [draws[row]])[0] for row in range(7)]
    assert sample(logits, draws) == alone
    assert sample(logits.numpy()[2:], draws[2:]) == alone[2:]


def test_a_nucleus_wider_than_the_first_ranking_is_cut_right(sample: Sample) -> None:
    counts = counts_of(sample, [0.0] * 5000, 300, top_p=0.5)
    assert counts[2500:].sum() == 0
    assert counts[2200:2500].sum() > 0


def test_top_k_beyond_the_first_ranking_keeps_exactly_k(sample: Sample) -> None:
    counts = counts_of(sample, np.linspace(1, 0, 3000).tolist(), 300, top_k=2000)
    assert counts[2000:].sum() == 0
    assert counts[1500:2000].sum() > 0


def test_min_p_beyond_the_first_ranking_keeps_all_that_are_likely_enough(sample: Sample) -> None:
    counts = counts_of(sample, np.linspace(1, 0, 3000).tolist(), 300, min_p=math.exp(-0.5))
    assert counts[1500:].sum() == 0
    assert counts[1200:1500].sum() > 0


def test_a_tiny_temperature_is_as_good_as_greedy(sample: Sample) -> None:
    assert counts_of(sample, [1.0, 1.5, -90.0], 5, temperature=1e-308).tolist() == [0, 5, 0]


def test_a_banned_token_is_not_chosen_even_greedily(sample: Sample) -> None:
    logits = np.array([[1.0, 5.0, 3.0]], dtype=np.float32)
    assert tokens_of(sample(logits, [make_draw(temperature=0.0, banned=(1, 999))])) == [2]
    assert tokens_of(sample(logits, [make_draw(temperature=0.0, banned=(0, 1, 2))])) == [1], "something must be chosen"


def test_logprobs_are_the_models_own(sample: Sample) -> None:
    logits = np.array([[0.0, 2.0, 1.0, 2.0]], dtype=np.float32)
    expected = torch.log_softmax(torch.tensor(logits[0]).double(), dim=0).tolist()
    draws = [make_draw(temperature=0.0, logit_bias=((0, 9.0),), logprobs=3)]
    [drawn] = sample(logits, draws)
    assert drawn.token == 0
    assert drawn.logprob == pytest.approx(expected[0])
    assert [id for id, _ in drawn.top] == [1, 3, 2]
    assert [logprob for _, logprob in drawn.top] == pytest.approx([expected[1], expected[3], expected[2]])


def test_zero_logprobs_are_those_of_the_chosen_token_and_none_are_none(sample: Sample) -> None:
    logits = np.zeros((2, 4), dtype=np.float32)
    asked, silent = sample(logits, [make_draw(temperature=0.0, logprobs=0), make_draw(temperature=0.0)])
    assert asked.logprob == pytest.approx(math.log(0.25))
    assert (asked.top, silent.logprob, silent.top) == ((), None, ())


@settings(deadline=None)
@given(st.integers(-(2**70), 2**70), st.integers(0, 100), st.integers(0, 10**6))
def test_a_uniform_number_is_in_range_and_repeats(seed: int, choice: int, position: int) -> None:
    number = uniform(seed, choice, position)
    assert 0 <= number < 1
    assert number == uniform(seed, choice, position)


def test_seed_choice_and_position_are_not_interchangeable() -> None:
    assert len({uniform(0, 0, 1), uniform(0, 1, 0), uniform(1, 0, 0)}) == 3


def test_uniform_numbers_of_neighbours_are_unrelated() -> None:
    numbers = np.array([[uniform(seed, choice, 5) for choice in range(60)] for seed in range(60)])
    assert abs(numbers.mean() - 0.5) < 0.02
    assert len(np.unique(numbers)) == numbers.size
    assert abs(np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]) < 0.06
