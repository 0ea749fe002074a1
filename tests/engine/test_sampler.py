"""Sampling: greedy, cut, drawn; and the same draw gives the same token."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.sampling import Sampling
from axon.engine.batch import Draw
from axon.engine.sampler import choose, sample
from axon.engine.uniform import uniform


def make_draw(position: int = 0, *, seed: int = 1, choice: int = 0, **sampling: Any) -> Draw:
    return Draw(
        sampling=Sampling(max_tokens=1, **sampling),
        seed=seed,
        choice=choice,
        position=position,
    )


def drawn(logits: list[float], count: int = 4000, **sampling: Any) -> npt.NDArray[np.float64]:
    row = np.array(logits)
    tokens = [choose(row, make_draw(position, **sampling)) for position in range(count)]
    return np.bincount(tokens, minlength=len(logits)) / count


def test_greedy_takes_the_lowest_id_among_equals() -> None:
    logits = torch.tensor([[0.0, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 2.0]])
    assert sample(logits, [make_draw(temperature=0.0)] * 2) == [1, 0]


def test_frequencies_follow_the_softmax() -> None:
    logits = [0.0, 1.0, 2.0, -1.0]
    expected = np.exp(logits) / np.exp(logits).sum()
    assert np.abs(drawn(logits) - expected).max() < 0.03


def test_temperature_sharpens_and_flattens() -> None:
    cold, hot = drawn([0.0, 1.0], temperature=0.25), drawn([0.0, 1.0], temperature=4.0)
    assert cold[1] > 0.96
    assert 0.5 < hot[1] < 0.62


def test_top_k_keeps_the_k_most_likely() -> None:
    frequencies = drawn([0.0, 1.0, 0.5, -1.0], top_k=2)
    assert (frequencies > 0).tolist() == [False, True, True, False]


def test_top_p_keeps_the_smallest_set_that_holds_the_mass() -> None:
    logits = np.log([0.5, 0.3, 0.15, 0.05]).tolist()
    assert (drawn(logits, top_p=0.75) > 0).tolist() == [True, True, False, False]
    assert (drawn(logits, top_p=0.01) > 0).tolist() == [True, False, False, False]


def test_a_nucleus_wider_than_the_first_sort_is_cut_right() -> None:
    tokens = {choose(np.zeros(5000), make_draw(position, top_p=0.5)) for position in range(3000)}
    assert max(tokens) < 2500
    assert max(tokens) > 2300


def test_a_row_is_drawn_the_same_alone_and_among_others() -> None:
    logits = torch.randn(6, 300, generator=torch.Generator().manual_seed(0))
    draws = [make_draw(row, temperature=float(row % 3), top_k=row * 7, top_p=0.9) for row in range(6)]
    together = sample(logits, draws)
    assert together == [sample(logits[row : row + 1], [draws[row]])[0] for row in range(6)]


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
