"""Fills the masks of a step beside its computation, in a thread or in several at once. Knows no model."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

from axon.engine.constraint import Masks
from axon.engine.grammar.mask import SpanMasks, Words, take_together
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


def begin_together(masks: Sequence[Masks], rows: Words) -> Callable[[], None]:
    """Begins to fill the masks of spans without drafts, one row each and several at once; the tokens before each draw
    must be known. What it returns waits until the rows are filled, and must be called before a mask is asked for."""
    ours = [each for each in masks if isinstance(each, SpanMasks)]
    assert all(each.is_single for each in ours), "a draw of the device has no drafts"
    open = [(each.matcher.state, index) for index, each in enumerate(ours) if each.matcher.is_open]
    started = threading.Event()

    def compute() -> None:
        started.set()
        if open:
            _executor().unsafe_compute_mask_ptr(open, rows.ctypes.data, rows.shape[1] * 4, len(ours))

    filling = _thread().submit(compute)
    started.wait()  # the thread then computes without the interpreter; otherwise it might wait for it for long

    def finish() -> None:
        filling.result()
        for index, each in enumerate(ours):
            if each.matcher.is_open:
                each.matcher.note_error()
            else:
                rows[index] = 0
        take_together(ours, rows)

    return finish


def _fill_each(masks: Iterable[SpanMasks]) -> None:
    for each in masks:
        each.fill()


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="axon-device-masks")


@cache
def _executor() -> "LLExecutor":
    from llguidance import LLExecutor

    return LLExecutor(num_threads=num_threads())


def num_threads() -> int:
    """Threads that fill the masks of a step together."""
    return max(1, min(_MAX_THREADS, usable_cores() - 1))
