"""Bias, penalties and bans on the device, as ``axon.engine.sample.adjust`` has them on the host. Draws nothing.

Only ids travel to the device: those of outputs and bans with each step, those of a prompt once. The newest token may be
there alone, while the step that draws it still runs.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np
import torch

from axon.engine.batch import PLACEHOLDER, Draw
from axon.engine.cuda.sample.sending import send
from axon.engine.cuda.sample.special import Special

_MOST_PROMPTS = 512
"""Prompts that are kept on the device for the next step of the same sequences."""
_RowIds = tuple[int, Sequence[int]]
"""A row, and ids in it."""


class Adjuster:
    """Changes rows of float32 logits in place; knows prompts again by their tuple."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._prompts: OrderedDict[int, tuple[tuple[int, ...], torch.Tensor]] = OrderedDict()
        """By the identity of a tuple: the tuple, which keeps it from being another's, and its ids on the device."""

    def adjust(self, scores: torch.Tensor, specials: Sequence[Special], before: torch.Tensor | None) -> None:
        """Changes the rows, one for each of these draws. ``before`` has the drawn tokens of the step before."""
        draws = [each.draw for each in specials]
        _, width = scores.shape
        flat = scores.view(-1)
        self._add_bias(flat, draws, width)
        outputs = self._outputs(specials, before, width)
        self._penalise_repetition(flat, draws, outputs, width)
        self._penalise_outputs(flat, draws, outputs, width)
        banned = self._indices(((row, draw.banned_ids) for row, draw in enumerate(draws)), width)
        flat.index_fill_(0, banned, float("-inf"))

    def _add_bias(self, flat: torch.Tensor, draws: Sequence[Draw], width: int) -> None:
        sums: dict[int, float] = {}
        for row, draw in enumerate(draws):
            for id, bias in draw.sampling.logit_bias:
                if 0 <= id < width:
                    sums[row * width + id] = sums.get(row * width + id, 0.0) + bias
        if sums:
            indices = send(np.fromiter(sums, np.int64, len(sums)), self._device)
            flat[indices] += self._floats(sums.values())

    def _outputs(self, specials: Sequence[Special], before: torch.Tensor | None, width: int) -> torch.Tensor:
        """The index of each output token in the flattened rows, as often as it occurs."""
        known = ((row, _known(each.draw.output_ids)) for row, each in enumerate(specials))
        indices = self._indices(known, width)
        unknown = [(row * width, each.newest) for row, each in enumerate(specials) if each.newest >= 0]
        if not unknown:
            return indices
        assert before is not None, "a placeholder has a step before it"
        starts, newest = send(np.array(unknown, np.int64).T.copy(), self._device)
        return torch.cat([indices, starts + before[newest]])

    def _penalise_repetition(
        self, flat: torch.Tensor, draws: Sequence[Draw], outputs: torch.Tensor, width: int
    ) -> None:
        if not any(draw.sampling.penalises_prompt for draw in draws):
            return
        prompts = [self._prompt(draw.prompt_ids) + row * width for row, draw in enumerate(draws) if draw.prompt_ids]
        seen = torch.cat([outputs, *prompts])
        penalties = self._floats(draw.sampling.repetition_penalty for draw in draws)[seen // width]
        old = flat[seen]
        flat[seen] = torch.where(old > 0, old / penalties, old * penalties)  # equal indices are given equal numbers

    def _penalise_outputs(self, flat: torch.Tensor, draws: Sequence[Draw], outputs: torch.Tensor, width: int) -> None:
        if not any(draw.sampling.presence_penalty or draw.sampling.frequency_penalty for draw in draws):
            return
        counts = torch.zeros(len(flat), dtype=torch.int32, device=self._device)
        counts.index_add_(0, outputs, torch.ones_like(outputs, dtype=torch.int32))
        rows = outputs // width
        frequency = self._floats(draw.sampling.frequency_penalty for draw in draws)[rows]
        presence = self._floats(draw.sampling.presence_penalty for draw in draws)[rows]
        flat[outputs] = flat[outputs] - (frequency * counts[outputs] + presence)

    def _prompt(self, ids: tuple[int, ...]) -> torch.Tensor:
        """The ids of a prompt on the device."""
        known = self._prompts.pop(id(ids), None) or (ids, send(np.fromiter(ids, np.int64, len(ids)), self._device))
        self._prompts[id(ids)] = known
        if len(self._prompts) > _MOST_PROMPTS:
            self._prompts.popitem(last=False)
        return known[1]

    def _indices(self, rows: Iterable[_RowIds], width: int) -> torch.Tensor:
        """The indices of ids in the flattened rows; an id that no row has is left out."""
        found = [np.empty(0, np.int64)]
        for row, ids in rows:
            if ids:
                numbers = np.fromiter(ids, np.int64, len(ids))
                found.append(row * width + numbers[(numbers >= 0) & (numbers < width)])
        return send(np.concatenate(found), self._device)

    def _floats(self, numbers: Iterable[float]) -> torch.Tensor:
        return send(np.array([*numbers], np.float32), self._device)


def _known(ids: tuple[int, ...]) -> tuple[int, ...]:
    return ids[:-1] if ids and ids[-1] == PLACEHOLDER else ids
