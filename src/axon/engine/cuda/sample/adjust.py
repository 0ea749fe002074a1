"""Bias, penalties and bans on the device, as ``axon.engine.sample.adjust`` has them on the host. Draws nothing.

Only the ids of a row's history travel to the device. A prompt goes there once; the newest token may be there alone,
while the step that draws it still runs.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from axon.engine.batch import PLACEHOLDER, Draw

_MOST_PROMPTS = 512
"""Prompts that are kept on the device for the next step of the same sequences."""
Entries = tuple[int, Sequence[int]]
"""A row, and ids in it."""


class History(NamedTuple):
    """A draw whose row is to be adjusted."""

    draw: Draw
    newest: int = -1
    """Where the newest output token stands among the drawn tokens of the step before, if its id is not known yet."""


class Adjuster:
    """Changes rows of float32 logits in place; knows prompts again by their tuple."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._prompts: OrderedDict[int, tuple[tuple[int, ...], torch.Tensor]] = OrderedDict()
        """By the identity of a tuple: the tuple, which keeps it from being another's, and its ids on the device."""

    def adjust(self, scores: torch.Tensor, histories: Sequence[History], before: torch.Tensor | None) -> None:
        """Changes each row as its draw asks. ``before`` has the drawn tokens of the step before."""
        draws = [each.draw for each in histories]
        _, width = scores.shape
        flat = scores.view(-1)
        self._add_bias(flat, draws, width)
        outputs = self._outputs(histories, before, width)
        self._penalise_repetition(flat, draws, outputs, width)
        self._penalise_outputs(flat, draws, outputs, width)
        banned = self._places(((row, draw.banned_ids) for row, draw in enumerate(draws)), width)
        flat.index_fill_(0, banned, float("-inf"))

    def _add_bias(self, flat: torch.Tensor, draws: Sequence[Draw], width: int) -> None:
        sums: dict[int, float] = {}
        for row, draw in enumerate(draws):
            for id, bias in draw.sampling.logit_bias:
                if 0 <= id < width:
                    sums[row * width + id] = sums.get(row * width + id, 0.0) + bias
        if sums:
            places = self._send(np.fromiter(sums, np.int64, len(sums)))
            flat[places] += self._floats(sums.values())

    def _outputs(self, histories: Sequence[History], before: torch.Tensor | None, width: int) -> torch.Tensor:
        """The place of each output token, as often as it occurs."""
        known = ((row, _known(each.draw.output_ids)) for row, each in enumerate(histories))
        places = self._places(known, width)
        unknown = [(row * width, each.newest) for row, each in enumerate(histories) if each.newest >= 0]
        if not unknown:
            return places
        assert before is not None, "a placeholder has a step before it"
        starts, newest = self._send(np.array(unknown, np.int64).T.copy())
        return torch.cat([places, starts + before[newest]])

    def _penalise_repetition(
        self, flat: torch.Tensor, draws: Sequence[Draw], outputs: torch.Tensor, width: int
    ) -> None:
        if not any(draw.sampling.penalises_prompt for draw in draws):
            return
        prompts = [self._prompt(draw.prompt_ids) + row * width for row, draw in enumerate(draws) if draw.prompt_ids]
        seen = torch.cat([outputs, *prompts])
        penalties = self._floats(draw.sampling.repetition_penalty for draw in draws)[seen // width]
        old = flat[seen]
        flat[seen] = torch.where(old > 0, old / penalties, old * penalties)  # equal places are given equal numbers

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
        known = self._prompts.pop(id(ids), None) or (ids, self._send(np.fromiter(ids, np.int64, len(ids))))
        self._prompts[id(ids)] = known
        if len(self._prompts) > _MOST_PROMPTS:
            self._prompts.popitem(last=False)
        return known[1]

    def _places(self, entries: Iterable[Entries], width: int) -> torch.Tensor:
        """The places of ids in the flattened rows; an id that no row has is left out."""
        found = [np.empty(0, np.int64)]
        for row, ids in entries:
            if ids:
                numbers = np.fromiter(ids, np.int64, len(ids))
                found.append(row * width + numbers[(numbers >= 0) & (numbers < width)])
        return self._send(np.concatenate(found))

    def _floats(self, numbers: Iterable[float]) -> torch.Tensor:
        return self._send(np.array([*numbers], np.float32))

    def _send(self, numbers: npt.NDArray[Any]) -> torch.Tensor:
        here = torch.from_numpy(numbers)
        if self._device.type == "cuda":
            here = here.pin_memory()
        return here.to(self._device, non_blocking=True)


def _known(ids: tuple[int, ...]) -> tuple[int, ...]:
    return ids[:-1] if ids and ids[-1] == PLACEHOLDER else ids
