"""Penalties on the device against those on the host, and what of a step's tokens is scored. Needs no GPU."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.sampling import Sampling
from axon.engine.batch import PLACEHOLDER, Draw, Drawn
from axon.engine.cuda.sample.adjust import Adjuster
from axon.engine.cuda.sample.drawn_scores import DrawnScores
from axon.engine.cuda.sample.special import Special
from axon.engine.sample import adjust as host
from axon.engine.sample.sampler import sample

WIDTH = 64
CPU = torch.device("cpu")
ids: st.SearchStrategy[tuple[int, ...]] = st.lists(st.integers(0, WIDTH - 1), max_size=12).map(tuple)


@st.composite
def drawn_from(draw: st.DrawFn) -> Draw:
    penalty = st.sampled_from([0.0, 0.4, -1.5])
    sampling = Sampling(
        max_tokens=9,
        repetition_penalty=draw(st.sampled_from([1.0, 1.3, 0.7])),
        presence_penalty=draw(penalty),
        frequency_penalty=draw(penalty),
        logit_bias=tuple(draw(st.lists(st.tuples(st.integers(-2, WIDTH + 2), st.floats(-100, 100)), max_size=4))),
    )
    return Draw(
        sampling=sampling,
        seed=1,
        choice=0,
        position=0,
        prompt_ids=draw(ids) if sampling.penalises_prompt else (),
        output_ids=draw(ids) if sampling.penalises_output else (),
        banned_ids=draw(st.lists(st.integers(0, WIDTH + 2), max_size=3).map(tuple)),
    )


@given(
    st.lists(drawn_from(), min_size=1, max_size=5), st.integers(0, 99), st.lists(st.booleans(), min_size=5, max_size=5)
)
def test_rows_are_adjusted_as_on_the_host_also_by_a_token_that_is_on_the_device_alone(
    draws: list[Draw], seed: int, unknown: list[bool]
) -> None:
    rows = np.random.default_rng(seed).normal(0, 8, (len(draws), WIDTH))
    expected = rows.copy()
    host.adjust(expected, draws)
    before = list[int]()
    specials = list[Special]()
    for each, is_unknown in zip(draws, unknown, strict=False):
        if each.output_ids and is_unknown:
            newest = Draw(
                sampling=each.sampling, seed=1, choice=0, position=0, prompt_ids=each.prompt_ids,
                output_ids=(*each.output_ids[:-1], PLACEHOLDER), banned_ids=each.banned_ids,
            )  # fmt: skip
            specials.append(Special(len(specials), newest, len(before)))
            before.append(each.output_ids[-1])
        else:
            specials.append(Special(len(specials), each))
    adjuster = Adjuster(CPU)
    for _ in range(2):  # the second time its prompts are known
        scores = torch.from_numpy(rows).float()
        adjuster.adjust(scores, specials, torch.tensor(before, dtype=torch.int32))
        np.testing.assert_allclose(scores.numpy(), expected, rtol=1e-5, atol=1e-4)


def test_a_prompt_is_sent_once_and_few_are_kept() -> None:
    adjuster, sampling = Adjuster(CPU), Sampling(max_tokens=1, repetition_penalty=2.0)
    prompts = [tuple(range(n % 60, n % 60 + 3)) for n in range(600)]
    for prompt in prompts:
        draw = Draw(sampling=sampling, seed=0, choice=0, position=0, prompt_ids=prompt)
        sent = set[int]()
        for _ in range(2):
            scores = torch.ones(1, WIDTH)
            adjuster.adjust(scores, [Special(0, draw)], None)
            assert scores[0].tolist() == [0.5 if id in prompt else 1.0 for id in range(WIDTH)]
            sent.add(id(adjuster._prompts[id(prompt)][1]))
        assert len(sent) == 1
    assert len(adjuster._prompts) == 512
    assert id(prompts[-1]) in adjuster._prompts
    assert id(prompts[0]) not in adjuster._prompts


def test_drawn_tokens_have_the_log_probabilities_that_the_host_gives_them() -> None:
    logits = torch.from_numpy(np.random.default_rng(3).normal(0, 4, (3, WIDTH))).float()
    counts = [2, 0, 5]
    specials = [
        Special(
            row, Draw(sampling=Sampling(max_tokens=1, temperature=0.0, logprobs=count), seed=0, choice=0, position=0)
        )
        for row, count in enumerate(counts)
    ]
    own = logits.clone()
    asked = DrawnScores.of(specials[::2], own[::2], first_place=4)
    sampled = logits.argmax(1).int()
    logits.fill_(float("-inf"))  # as a mask does after its rows were taken
    asked.score(sampled)
    tokens = [0, 0, 0, 0, *sampled.tolist()]
    expected = sample(own, [special.draw for special in specials])
    found = asked.by_place(tokens)
    assert found.keys() == {4, 6}
    for place, each in found.items():
        _are_near(each, expected[place - 4])


def _are_near(one: Drawn, other: Drawn) -> None:
    assert (one.token, one.rank, [id for id, _ in one.top]) == (other.token, None, [id for id, _ in other.top])
    mine, others = ([each.logprob or 0.0, *(logprob for _, logprob in each.top)] for each in (one, other))
    np.testing.assert_allclose(mine, others, atol=1e-5)
