"""Draws for the samplers' tests, and both samplers by name."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from axon.domain.sampling import Sampling
from axon.engine.batch import Draw, Drawn
from axon.engine.native.sampler import NativeSampler
from axon.engine.sample import sampler

Sample = Callable[[Any, list[Draw]], list[Drawn]]


def make_draw(
    position: int = 0,
    *,
    seed: int = 1,
    choice: int = 0,
    prompt: tuple[int, ...] = (),
    output: tuple[int, ...] = (),
    banned: tuple[int, ...] = (),
    **sampling: Any,
) -> Draw:
    return Draw(
        sampling=Sampling(max_tokens=1, **sampling),
        seed=seed,
        choice=choice,
        position=position,
        prompt_ids=prompt,
        output_ids=output,
        banned_ids=banned,
    )


def tokens_of(drawn: list[Drawn]) -> list[int]:
    return [each.token for each in drawn]


def sample_natively(logits: Any, draws: list[Draw]) -> list[Drawn]:
    rows = np.ascontiguousarray(logits)
    return _native(rows.shape[1]).sample(rows, draws)


@cache
def _native(vocab_size: int) -> NativeSampler:
    return NativeSampler(vocab_size, threads=2)


SAMPLERS: dict[str, Sample] = {"numpy": lambda *each: sampler.sample(*each), "native": sample_natively}
