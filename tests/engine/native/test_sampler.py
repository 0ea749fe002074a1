"""The native sampler draws what the exact distribution says, and a row's result is its own to the bit."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.engine.batch import Draw
from axon.engine.grammar.mask import Words
from axon.engine.native.sampler import Floats, NativeSampler
from axon.engine.sample.adjust import adjust
from axon.engine.sample.sampler import sample as sample_in_float64
from axon.engine.sample.uniform import uniform
from axon.errors import Misconfigured
from tests.engine.sample.builders import make_draw, sample_natively, tokens_of
from tests.engine.sample.slow_sampler import distribution
from tests.engine.sample.test_sampler import logit_rows, samplings
from tests.long import examples

TOLERANCE = 1e-6
"""How far a boundary between two tokens may lie from where float64 has it."""
VOCAB_SIZE = 5003
PASSES = ("neon", "avx512", "avx2", "scalar")

wide_samplings = st.fixed_dictionaries(
    {
        "temperature": st.sampled_from([0.2, 0.7, 1.0, 1.5, 3.0]),
        "top_k": st.sampled_from([0, 0, 1, 40, 79, 80, 700, 4999]),
        "top_p": st.sampled_from([0.05, 0.5, 0.9, 0.95, 0.999, 1.0, 1.0]),
        "min_p": st.sampled_from([0.0, 0.0, 1e-6, 0.01, 0.3]),
        "presence_penalty": st.sampled_from([0.0, 0.4]),
        "frequency_penalty": st.sampled_from([0.0, 0.3]),
        "repetition_penalty": st.sampled_from([1.0, 1.15]),
        "logit_bias": st.lists(st.tuples(st.integers(0, 6000), st.floats(-100, 100)), max_size=3).map(tuple),
        "output": st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=5).map(tuple),
        "prompt": st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=50).map(tuple),
        "banned": st.lists(st.integers(0, 6000), max_size=2).map(tuple),
    }
)


def make_row(seed: int, scale: float = 3.0, width: int = VOCAB_SIZE) -> Floats:
    return (np.random.default_rng(seed).standard_normal((1, width)) * scale).astype(np.float32)


def falls_on(number: float, probabilities: npt.NDArray[np.float64], token: int) -> bool:
    """Whether the number falls on the token, or within the tolerance beside it."""
    below = probabilities[:token].sum()
    return bool(below - TOLERANCE <= number <= below + probabilities[token] + TOLERANCE)


def neighbours(draw: Draw) -> list[Draw]:
    """The draw with its truncation moved by the tolerance: a token at the very edge may stay or go."""
    sampling = draw.sampling
    top_ps = {sampling.top_p} | {sampling.top_p + sign * TOLERANCE for sign in (-1, 1) if sampling.top_p < 1}
    min_ps = {sampling.min_p * (1 + sign * TOLERANCE) for sign in (-1, 0, 1)}
    return [replace(draw, sampling=replace(sampling, top_p=top_p, min_p=min_p)) for top_p in top_ps for min_p in min_ps]


@settings(deadline=None)
@given(logit_rows, samplings, st.integers(0, 1000))
def test_a_choice_equals_the_slow_obvious_one(logits: list[float], options: dict[str, Any], position: int) -> None:
    draw = make_draw(position, **options)
    [drawn] = sample_natively(np.array([logits], dtype=np.float32), [draw])
    number = uniform(draw.seed, draw.choice, draw.position)
    rounded = [distribution(logits, each, lambda score: float(np.float32(score))) for each in neighbours(draw)]
    assert any(each[drawn.token] > 0 and falls_on(number, np.array(each), drawn.token) for each in rounded)


def exact_distribution(row: Floats, draw: Draw) -> npt.NDArray[np.float64]:
    """Every token's probability in float64, from scores that are rounded once, as the native sampler's are."""
    scores = row.astype(np.float64)
    adjust(scores, [draw])
    scores = scores[0].astype(np.float32).astype(np.float64)
    sampling = draw.sampling
    ranking = np.argsort(-scores, kind="stable")
    weights = np.exp((scores - scores.max()) / sampling.temperature)
    kept = ranking[: sampling.top_k or len(ranking)]
    kept = kept[weights[kept] >= sampling.min_p]
    cumulated = weights[kept].cumsum()
    kept = kept[: 1 + np.searchsorted(cumulated, min(sampling.top_p, 1.0) * cumulated[-1])]
    probabilities = np.zeros(len(scores))
    probabilities[kept] = weights[kept] / weights[kept].sum()
    return probabilities


@settings(deadline=None, max_examples=examples(300))
@given(st.integers(0, 50), st.sampled_from([0.0, 0.5, 3.0, 8.0]), wide_samplings, st.integers(0, 10**6))
def test_the_number_falls_on_the_token_of_a_large_vocabulary(
    seed: int, scale: float, options: dict[str, Any], position: int
) -> None:
    row = make_row(seed, scale)
    draw = make_draw(position, **options)
    [drawn] = sample_natively(row, [draw])
    number = uniform(draw.seed, draw.choice, draw.position)
    for each in neighbours(draw):
        probabilities = exact_distribution(row, each)
        if probabilities[drawn.token] > 0 and falls_on(number, probabilities, drawn.token):
            return
    raise AssertionError(f"{number} does not fall on {drawn.token}")


def test_it_draws_the_tokens_of_the_sampler_in_float64_but_for_one_in_a_thousand() -> None:
    rows = np.concatenate([make_row(seed, width=49152) for seed in range(8)])
    shapes: list[dict[str, Any]] = [
        {"temperature": 0.8},
        {"temperature": 1.0, "top_p": 0.95},
        {"temperature": 1.2, "top_k": 40, "top_p": 0.9},
        {"temperature": 1.0, "min_p": 0.05, "repetition_penalty": 1.15, "prompt": tuple(range(500))},
    ]
    same = total = 0
    for position in range(40):
        for shape in shapes:
            draws = [make_draw(position, seed=seed, **shape) for seed in range(len(rows))]
            ours, theirs = tokens_of(sample_natively(rows, draws)), tokens_of(sample_in_float64(rows, draws))
            same += sum(a == b for a, b in zip(ours, theirs, strict=True))
            total += len(draws)
    assert same >= total * 0.999


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_instruction_set_and_the_rows_beside_it_change_no_bit_of_a_row(passes: str, threads: int) -> None:
    width = 2 * VOCAB_SIZE
    rows = np.concatenate([make_row(seed, 0.3 + seed % 5, width) for seed in range(24)])
    draws = [
        make_draw(
            row,
            temperature=(0.0, 0.7, 1.0, 1.9)[row % 4],
            top_p=(1.0, 0.95, 0.5)[row % 3],
            top_k=(0, 40, 300)[row // 3 % 3],
            min_p=(0.0, 0.01)[row // 2 % 2],
            repetition_penalty=(1.0, 1.3)[row // 4 % 2],
            prompt=tuple(range(row * 5)),
            output=tuple(range(100, 100 + row)),
            logprobs=row % 6,
        )
        for row in range(len(rows))
    ]
    reference = NativeSampler(width)
    alone = [reference.sample(rows[row : row + 1], [draws[row]])[0] for row in range(len(rows))]
    try:
        sampler = NativeSampler(width, threads=threads, passes=passes)
    except Misconfigured:
        return  # another machine's
    assert sampler.sample(rows, draws) == alone
    assert sampler.sample(rows, draws[::-1], rows=range(len(rows))[::-1]) == alone[::-1]
    for each in (sampler, reference):
        each.close()


def test_logprobs_are_those_of_float64_to_a_millionth() -> None:
    rows = np.concatenate([make_row(seed, 2.0) for seed in range(5)])
    draws = [make_draw(row, logprobs=20, temperature=0.5 + row / 4, top_p=0.9) for row in range(5)]
    for ours, theirs in zip(sample_natively(rows, draws), sample_in_float64(rows, draws), strict=True):
        assert ours.logprob == pytest.approx(theirs.logprob, abs=TOLERANCE)
        assert [id for id, _ in ours.top] == [id for id, _ in theirs.top]
        assert [each for _, each in ours.top] == pytest.approx([each for _, each in theirs.top], abs=TOLERANCE)


def test_a_given_token_is_scored_and_nothing_is_drawn() -> None:
    row = np.zeros((1, 4), np.float32)
    [drawn] = sample_natively(row, [replace(make_draw(temperature=0.0, logprobs=0), given=2)])
    assert (drawn.token, drawn.rank) == (2, 3)
    assert drawn.logprob == pytest.approx(math.log(0.25))


def test_a_prompt_that_was_seen_before_is_not_taken_for_another() -> None:
    kept, row = NativeSampler(200), make_row(0, width=200)
    for step in range(50):
        draw = make_draw(step, prompt=tuple(range(step, 2 * step)), repetition_penalty=3.0, temperature=1.5)
        for each in (draw, replace(draw, position=step + 1)):
            fresh = NativeSampler(200)
            assert kept.sample(row, [each]) == fresh.sample(row, [each])
            fresh.close()
    kept.close()


def make_mask(width: int, allowed: set[int]) -> Words:
    bits = np.zeros(-(-width // 32) * 32, np.uint8)
    bits[list(allowed)] = 1
    return np.packbits(bits, bitorder="little").view(np.uint32)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_only_what_its_mask_allows_is_chosen(temperature: float) -> None:
    sampler, rows = NativeSampler(100, threads=2), np.repeat(make_row(0, width=100), 50, axis=0)
    draws = [make_draw(position, temperature=temperature) for position in range(50)]
    masks: list[Words | None] = [make_mask(100, {3, 64, 99}) if index % 2 else None for index in range(50)]
    free, masked = tokens_of(sampler.sample(rows, draws)), tokens_of(sampler.sample(rows, draws, masks=masks))
    assert masked[::2] == free[::2]
    assert set(masked[1::2]) <= {3, 64, 99}
    assert temperature == 0 or len(set(masked[1::2])) > 1
    sampler.close()


def test_bans_are_lifted_before_the_mask_and_a_mask_of_nothing_allows_all() -> None:
    sampler, row = NativeSampler(40), make_row(0, width=40)
    draw = make_draw(banned=(3, 35), temperature=0.0)
    [token] = tokens_of(sampler.sample(row, [draw], masks=[make_mask(40, {3, 35})]))
    assert token == max(3, 35, key=lambda id: row[0, id])
    [token] = tokens_of(sampler.sample(row, [draw], masks=[make_mask(40, set())]))
    assert token == row[0].argmax()
    sampler.close()


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("options", [{}, {"top_p": 0.5}, {"top_k": 3, "min_p": 0.1}, {"temperature": 0.0}], ids=str)
def test_a_row_that_holds_no_numbers_still_gives_a_token(broken: float, options: dict[str, Any]) -> None:
    for width in (1, 70, VOCAB_SIZE):
        row = np.full((1, width), broken, np.float32)
        [drawn] = sample_natively(row, [make_draw(logprobs=2, **options)])
        assert 0 <= drawn.token < width


def test_unknown_passes_are_refused() -> None:
    with pytest.raises(Misconfigured, match="no passes"):
        NativeSampler(10, passes="abacus")
