"""Fills the masks of a step beside its computation, in a thread or in several at once. Knows no model."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from axon.engine.constraint import Masks
from axon.engine.grammar.mask import SpanMasks
from axon.runtime.cores import usable_cores

if TYPE_CHECKING:
    from llguidance import LLExecutor

_MAX_THREADS = 8


class Filler:
    """Fills masks in a thread of its own, which the first of them starts."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="axon-masks")

    def begin(self, masks: Sequence[Masks]) -> None:
        """Begins to fill the masks of a step; whoever asks for one of them waits for it."""
        ours = [each for each in masks if isinstance(each, SpanMasks)]
        if ours:
            wait = self._thread.submit(_fill_each, ours).result
            for each in ours:
                each.wait = wait

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def fill_together(masks: Sequence[Masks]) -> None:
    """Fills the masks of a step now, several at once; the tokens before each draw must be known."""
    ours = [each for each in masks if isinstance(each, SpanMasks)]
    open = [each for each in ours if each.is_single and each.matcher.is_open]
    _fill_each(each for each in ours if not (each.is_single and each.matcher.is_open))
    if len(open) < 2:
        _fill_each(open)
        return
    rows = np.zeros((len(open), open[0].matcher.vocabulary.num_words), np.uint32)
    matchers = [(each.matcher.state, index) for index, each in enumerate(open)]
    _executor().unsafe_compute_mask_ptr(matchers, rows.ctypes.data, rows.shape[1] * 4, len(open))
    for index, each in enumerate(open):
        each.matcher.note_error()
        each.take(rows[index : index + 1])


def _fill_each(masks: Iterable[SpanMasks]) -> None:
    for each in masks:
        each.fill()


@cache
def _executor() -> "LLExecutor":
    from llguidance import LLExecutor

    return LLExecutor(num_threads=max(1, min(_MAX_THREADS, usable_cores() - 1)))
