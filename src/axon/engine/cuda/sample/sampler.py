"""Draws a step's tokens on the device; only rows that need what the device cannot do go to the host."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from axon.engine.batch import Draw, Drawn
from axon.engine.cuda.jit import ceil_pow2, launch
from axon.engine.cuda.sample.draw import NUM_SECTIONS, draw, sum_sections
from axon.engine.cuda.sample.mask import mask_rows
from axon.engine.cuda.sample.truncate import draw_truncated
from axon.engine.grammar.filling import begin_together
from axon.engine.sample.adjust import is_adjusted
from axon.engine.sample.sampler import sample
from axon.engine.sample.truncate import is_truncated

_TRUNCATED_WIDTH = 4096
_MASKED_WIDTH = 1024
_MASK_BUFFERS = 4
"""Host buffers of masks, used in rotation; the device reads from those of two steps at most."""


class Special(NamedTuple):
    """A draw that needs more than a temperature, and its row."""

    row: int
    draw: Draw

    @property
    def needs_host(self) -> bool:
        """Whether the logits are adjusted by more than a mask, or log probabilities are asked for."""
        return is_adjusted(self.draw, but_mask=True) or self.draw.sampling.logprobs is not None

    @property
    def needs_mask(self) -> bool:
        """Whether the device draws from a row that a grammar masks."""
        return self.draw.mask is not None and not self.needs_host

    @property
    def needs_truncation(self) -> bool:
        """Whether the device draws from a truncated row."""
        return not self.needs_host and self.draw.sampling.temperature > 0 and is_truncated(self.draw.sampling)


class DeviceSampler:
    """Draws the tokens of a step; owns the buffers for that."""

    def __init__(self, vocab_size: int, max_rows: int, device: torch.device) -> None:
        self._section = -(-vocab_size // NUM_SECTIONS)
        self._vocab_size = vocab_size
        self._device = device
        self._max_rows = max_rows
        self._words: list[torch.Tensor] = []
        self._highest = torch.empty(max_rows * NUM_SECTIONS, dtype=torch.float32, device=device)
        self._sums = torch.empty(max_rows * NUM_SECTIONS, dtype=torch.float32, device=device)

    def draw(
        self,
        logits: torch.Tensor,
        inverse_temperatures: torch.Tensor,
        numbers: torch.Tensor,
        sampled: torch.Tensor,
        *,
        pdl: bool,
    ) -> None:
        """Draws one token for each row, by temperature alone."""
        constants = {
            "NUM_SECTIONS": NUM_SECTIONS,
            "SECTION": self._section,
            "WIDTH": ceil_pow2(self._section),
            "PDL": pdl,
        }
        sum_sections[(len(logits), NUM_SECTIONS)](
            logits, self._vocab_size, inverse_temperatures, self._highest, self._sums,
            **constants, **launch(num_warps=4, pdl=pdl),
        )  # fmt: skip
        draw[(len(logits),)](
            logits, self._vocab_size, inverse_temperatures, numbers, self._highest, self._sums, sampled,
            **constants, **launch(num_warps=4, pdl=pdl),
        )  # fmt: skip

    def begin_masked(
        self,
        logits: torch.Tensor,
        specials: Sequence[Special],
        inverse_temperatures: torch.Tensor,
        numbers: torch.Tensor,
        sampled: torch.Tensor,
    ) -> Callable[[], None]:
        """Begins to fill the masks of grammars, while the device computes the logits; the function that it returns
        waits for them, masks these rows, and draws all rows anew: those without a mask are drawn as before."""
        masked = [(special.row, special.draw.mask) for special in specials if special.needs_mask and special.draw.mask]
        masked.sort(key=lambda pair: not pair[1].is_alone)
        words = self._next_words(len(masked))
        rows = words.numpy().view(np.uint32)
        alone = [mask.masks for _, mask in masked if mask.is_alone]
        wait = begin_together(alone, rows[: len(alone)]) if alone else None

        def finish() -> None:
            if wait is not None:
                wait()
            for index in range(len(alone), len(masked)):  # behind drafts a mask needs those before it
                rows[index] = masked[index][1].words()
            self._mask(logits, [row for row, _ in masked], words)
            self.draw(logits, inverse_temperatures, numbers, sampled, pdl=False)

        return finish

    def rehearse_masks(self, dtype: torch.dtype) -> None:
        """Has the kernel compiled that masks logits of this dtype."""
        self._mask(torch.zeros((1, self._vocab_size), dtype=dtype, device=self._device), [0], self._next_words(1))

    def _next_words(self, num_rows: int) -> torch.Tensor:
        """Host memory for as many masks, which the device can read from; it is used again some steps later."""
        if not self._words:
            shape, pinned = (self._max_rows, -(-self._vocab_size // 32)), self._device.type == "cuda"
            self._words = [torch.zeros(shape, dtype=torch.int32, pin_memory=pinned) for _ in range(_MASK_BUFFERS)]
        self._words.append(self._words.pop(0))
        return self._words[-1][:num_rows]

    def _mask(self, logits: torch.Tensor, rows: list[int], words: torch.Tensor) -> None:
        """Forbids in the given rows the tokens without a bit; the logits stay so."""
        width = min(_MASKED_WIDTH, ceil_pow2(self._vocab_size))
        mask_rows[(len(rows), -(-self._vocab_size // width))](
            logits, self._vocab_size, self._send(rows, torch.int32), words.to(self._device, non_blocking=True),
            words.shape[1], WIDTH=width, **launch(num_warps=4),
        )  # fmt: skip

    def draw_truncated(
        self,
        logits: torch.Tensor,
        specials: Sequence[Special],
        inverse_temperatures: torch.Tensor,
        numbers: torch.Tensor,
        sampled: torch.Tensor,
    ) -> None:
        """Draws the given rows anew, with top-k, top-p and min-p."""
        samplings = [special.draw.sampling for special in specials]
        rows = self._send([special.row for special in specials], torch.int32)
        top_ks = self._send([sampling.top_k for sampling in samplings], torch.int32)
        top_ps = self._send([sampling.top_p for sampling in samplings], torch.float64)
        min_ps = self._send([sampling.min_p for sampling in samplings], torch.float32)
        draw_truncated[(len(specials),)](
            logits, self._vocab_size, rows, top_ks, top_ps, min_ps, inverse_temperatures, numbers, sampled,
            WIDTH=min(_TRUNCATED_WIDTH, ceil_pow2(self._vocab_size)), **launch(num_warps=8),
        )  # fmt: skip

    def draw_on_host(self, logits: torch.Tensor, specials: Sequence[Special], sampled: torch.Tensor) -> list[Drawn]:
        """Waits for the logits of the given rows, draws from them, and sends the tokens back."""
        rows = self._send([special.row for special in specials], torch.int64)
        drawn = sample(logits[rows].float().cpu(), [special.draw for special in specials])
        sampled[rows] = self._send([each.token for each in drawn], torch.int32)
        return drawn

    def _send(self, numbers: list[int] | list[float], dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor(numbers, dtype=dtype, pin_memory=self._device.type == "cuda").to(
            self._device, non_blocking=True
        )
