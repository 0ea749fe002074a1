"""Draws with masks, penalties and log probabilities in one step, against those on the host. Needs no model."""

import numpy as np
import numpy.typing as npt
import torch

from axon.domain.sampling import Sampling
from axon.engine.batch import Draw, Span
from axon.engine.constraint import Masks
from axon.engine.cuda.sample.sampler import DeviceSampler
from axon.engine.cuda.step.special_draws import DrawnRow, SpecialDraws
from axon.engine.cuda.step.table_slots import Slots
from axon.engine.sample.sampler import sample
from axon.engine.sample.uniform import uniform

WIDTH = 300
PENALTIES = Sampling(max_tokens=1, temperature=0.7, presence_penalty=3.0, logprobs=2)
SAMPLINGS = [
    Sampling(max_tokens=1, temperature=0.8),
    PENALTIES,
    Sampling(max_tokens=1, temperature=0.5, logprobs=1),
    Sampling(max_tokens=1, temperature=1.0, repetition_penalty=1.5, logit_bias=((3, 5.0),)),
    Sampling(max_tokens=1, temperature=0.9, logit_bias=((7, 9.0),)),
    Sampling(max_tokens=1, temperature=0.0, frequency_penalty=0.5, logprobs=0),
]
MASKED = (1, 2, 3)
FIRST_PLACE = 2


class _FixedMask:
    """A mask without a grammar."""

    is_alone = False
    is_empty = False

    def __init__(self, allowed: npt.NDArray[np.bool_]) -> None:
        self._allowed = allowed

    @property
    def masks(self) -> Masks:
        raise NotImplementedError("no other draws behind it")

    def words(self) -> npt.NDArray[np.uint32]:
        return np.packbits(self._allowed, bitorder="little").view(np.uint32)

    def allowed_ids(self) -> list[int]:
        return [int(id) for id in np.flatnonzero(self._allowed)]


def compare() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    numbers = np.random.default_rng(0)
    logits = torch.from_numpy(numbers.normal(0, 3, (len(SAMPLINGS), WIDTH))).float()
    draws = [
        Draw(
            sampling=sampling,
            seed=7 + row,
            choice=0,
            position=3,
            prompt_ids=tuple(range(5, 60, 3)) if sampling.penalises_prompt else (),
            output_ids=tuple(range(0, WIDTH, 2)) if sampling.penalises_output else (),
            banned_ids=(1, 2) if row not in MASKED else (),
            mask=_FixedMask(numbers.random(320) < 0.5) if row in MASKED else None,
        )
        for row, sampling in enumerate(SAMPLINGS)
    ]
    expected = sample(logits, draws)
    inputs = {
        "inverse_temperatures": torch.tensor([1 / each.temperature if each.temperature else 0.0 for each in SAMPLINGS]),
        "numbers": torch.tensor([uniform(each.seed, each.choice, each.position) for each in draws]).double(),
    }
    inputs = {name: array.to(device) for name, array in inputs.items()}
    sampler, slots = DeviceSampler(WIDTH, len(SAMPLINGS), device), Slots(len(SAMPLINGS), 1)
    slots.is_special[: len(SAMPLINGS)] = [row > 0 for row in range(len(SAMPLINGS))]
    rows = [
        DrawnRow(row, row, Span(id=str(row), first=0, token_ids=(1,), block_ids=(), draw=draw), draw)
        for row, draw in enumerate(draws)
    ]
    there, tokens = logits.to(device), torch.zeros(FIRST_PLACE + len(rows), dtype=torch.int32, device=device)
    sampled = tokens[FIRST_PLACE:]
    sampler.draw(there, inputs["inverse_temperatures"], inputs["numbers"], sampled, pdl=False)
    specials = SpecialDraws(sampler, slots, at_once=False)
    specials.draw(there, rows, inputs, sampled, None, FIRST_PLACE)
    left, asked = specials.take()
    assert left, "draws with masks are left until these are filled"
    for launch in left:
        launch()
    drawn = tokens.tolist()
    assert drawn[FIRST_PLACE:] == [each.token for each in expected]
    [scores] = asked
    found = scores.by_place(drawn)
    assert found.keys() == {FIRST_PLACE + row for row, each in enumerate(SAMPLINGS) if each.logprobs is not None}
    for place, mine in found.items():
        other = expected[place - FIRST_PLACE]
        assert [id for id, _ in mine.top] == [id for id, _ in other.top]
        assert abs((mine.logprob or 0.0) - (other.logprob or 0.0)) < 1e-5
