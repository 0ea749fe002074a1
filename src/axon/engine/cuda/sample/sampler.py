"""Draws a step's tokens on the device: by temperature alone, or with what their sampling asks for beyond that."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from axon.engine.cuda.jit import ceil_pow2, launch
from axon.engine.cuda.sample.adjust import Adjuster
from axon.engine.cuda.sample.draw import NUM_SECTIONS, draw, sum_sections
from axon.engine.cuda.sample.mask import mask_rows
from axon.engine.cuda.sample.sending import send_list
from axon.engine.cuda.sample.special import Special
from axon.engine.cuda.sample.truncate import draw_truncated
from axon.engine.grammar.filling import begin_together

_TRUNCATED_WIDTH = 4096
_MASKED_WIDTH = 1024
_MASK_BUFFERS = 4
"""Host buffers of masks, used in rotation; the device reads from those of two steps at most."""


class StepMasks:
    """The masks of a step's grammars, which are still being filled on the host."""

    def __init__(self, rows: list[int], words: torch.Tensor, wait: Callable[[], None]) -> None:
        """``rows`` are those of the logits that they are of; ``wait`` waits until ``words`` are there."""
        self._indices = {row: index for index, row in enumerate(rows)}
        self._words, self._wait = words, wait
        self._sent: torch.Tensor | None = None

    def take(self, specials: Sequence[Special], device: torch.device) -> tuple[list[Special], torch.Tensor]:
        """Those of these draws that have a mask, and their masks on the device; waits until they are filled."""
        if self._sent is None:
            self._wait()
            self._sent = self._words.to(device, non_blocking=True)
        masked = [special for special in specials if special.row in self._indices]
        indices = [self._indices[special.row] for special in masked]
        return masked, self._sent[send_list(indices, torch.int64, device)]


class DeviceSampler:
    """Draws the tokens of a step; owns the buffers for that."""

    def __init__(self, vocab_size: int, max_rows: int, device: torch.device) -> None:
        self._section = -(-vocab_size // NUM_SECTIONS)
        self._vocab_size = vocab_size
        self._device = device
        self._max_rows = max_rows
        self._adjuster = Adjuster(device)
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

    def begin_masks(self, specials: Sequence[Special]) -> StepMasks | None:
        """Begins to fill the masks of those that have a grammar, while the device computes the logits."""
        masked = [(special.row, special.draw.mask) for special in specials if special.draw.mask]
        if not masked:
            return None
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

        return StepMasks([row for row, _ in masked], words, finish)

    def draw_masked(
        self,
        logits: torch.Tensor,
        specials: Sequence[Special],
        masks: StepMasks,
        inverse_temperatures: torch.Tensor,
        numbers: torch.Tensor,
        sampled: torch.Tensor,
    ) -> None:
        """Masks the given rows, and draws all rows anew: those without a mask are drawn as before."""
        masked, words = masks.take(specials, self._device)
        self._mask(logits, [special.row for special in masked], words)
        self.draw(logits, inverse_temperatures, numbers, sampled, pdl=False)

    def draw_adjusted(
        self,
        logits: torch.Tensor,
        specials: Sequence[Special],
        before: torch.Tensor | None,
        masks: StepMasks | None,
        inverse_temperatures: torch.Tensor,
        numbers: torch.Tensor,
        sampled: torch.Tensor,
    ) -> None:
        """Draws the given rows anew, with bias, penalties, bans and masks: from a copy in float32, because a rounded
        penalty would be another one. ``before`` has the tokens that the step before drew."""
        rows = self._send([special.row for special in specials], torch.int64)
        scores = logits[rows].float()
        self._adjuster.adjust(scores, specials, before)
        own = {special.row: index for index, special in enumerate(specials)}
        if masks is not None:
            masked, words = masks.take(specials, self._device)
            self._mask(scores, [own[special.row] for special in masked], words)
        temperatures, numbers = inverse_temperatures[rows], numbers[rows]
        tokens = torch.empty(len(specials), dtype=torch.int32, device=self._device)
        self.draw(scores, temperatures, numbers, tokens, pdl=False)
        if cut := [special._replace(row=own[special.row]) for special in specials if special.needs_truncation]:
            self.draw_truncated(scores, cut, temperatures, numbers, tokens)
        sampled[rows] = tokens

    def take_rows(self, logits: torch.Tensor, rows: Sequence[int]) -> torch.Tensor:
        """A copy of some rows of logits."""
        return logits[self._send(list(rows), torch.int64)]

    def rehearse_masks(self, dtype: torch.dtype) -> None:
        """Has the kernel compiled that masks logits of this dtype, and that for adjusted ones."""
        for each in (dtype, torch.float32):
            logits = torch.zeros((1, self._vocab_size), dtype=each, device=self._device)
            self._mask(logits, [0], self._next_words(1).to(self._device))

    def _next_words(self, num_rows: int) -> torch.Tensor:
        """Host memory for as many masks, which the device can read from; it is used again some steps later."""
        if not self._words:
            shape, pinned = (self._max_rows, -(-self._vocab_size // 32)), self._device.type == "cuda"
            self._words = [torch.zeros(shape, dtype=torch.int32, pin_memory=pinned) for _ in range(_MASK_BUFFERS)]
        self._words.append(self._words.pop(0))
        return self._words[-1][:num_rows]

    def _mask(self, logits: torch.Tensor, rows: list[int], words: torch.Tensor) -> None:
        """Forbids in the given rows the tokens without a bit; the logits stay so."""
        if not rows:
            return
        width = min(_MASKED_WIDTH, ceil_pow2(self._vocab_size))
        mask_rows[(len(rows), -(-self._vocab_size // width))](
            logits, self._vocab_size, self._send(rows, torch.int32), words, words.shape[1],
            WIDTH=width, **launch(num_warps=4),
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

    def _send(self, numbers: list[int] | list[float], dtype: torch.dtype) -> torch.Tensor:
        return send_list(numbers, dtype, self._device)
