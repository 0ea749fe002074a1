"""Runs a batch on the native kernels: forward pass, then one token for each draw. Knows no scheduler."""

from itertools import accumulate
from pathlib import Path

import numpy as np

from axon.engine.batch import Batch, Draw, Drawn
from axon.engine.load.architecture import Architecture
from axon.engine.load.draft_head import DraftHead
from axon.engine.native.build import GROUP_SIZE
from axon.engine.native.draft_head import NativeHead, head_bytes
from axon.engine.native.head_drafter import HeadDrafter
from axon.engine.native.low_rank import Handles, NativeAdapters
from axon.engine.native.model import Floats, Ints, NativeModel, Rows
from axon.engine.native.mover import NativeMover
from axon.engine.native.packed_weights import ensure_packed
from axon.engine.native.sampler import NativeSampler
from axon.engine.phases import enter
from axon.engine.sample.adjust import is_adjusted


class NativeRunner:
    """Holds the native model; logits are copied out only if a draw needs more than the argmax."""

    def __init__(self, model: NativeModel, architecture: Architecture, head: HeadDrafter | None = None) -> None:
        self.head = head
        """The head that drafts for the model; None without one."""
        self._model, vocab_size = model, architecture.vocab_size
        self.adapters = NativeAdapters(model, architecture)
        self._sampler = NativeSampler(vocab_size, team=model.team)
        self._logits = np.empty((0, vocab_size), np.float32)

    def run(self, batch: Batch) -> list[Drawn]:
        """Computes the batch's tokens and samples one token for each draw."""
        enter("prepare")
        draws = batch.draws
        asking = [index for index, draw in enumerate(draws) if not _is_greedy(draw)]
        logits = self._buffer(len(draws)) if asking else None
        rows = to_rows(batch, self.adapters.handles(batch))
        enter("forward")
        drawn = [Drawn(token) for token in self._model.step(rows, logits).tolist()]
        if logits is not None:
            enter("sample")
            asked = [draws[index] for index in asking]
            masks = [draw.mask.words() if draw.mask is not None else None for draw in asked]
            sampled = self._sampler.sample(logits, asked, rows=asking, masks=masks)
            for index, each in zip(asking, sampled, strict=True):
                drawn[index] = each
        return drawn

    def open_mover(self, num_slots: int) -> NativeMover:
        """Makes slots for so many blocks in memory beside the model's; returns what copies them."""
        return NativeMover(self._model, num_slots)

    def _buffer(self, num_rows: int) -> Floats:
        if len(self._logits) < num_rows:
            self._logits = np.empty((num_rows, self._logits.shape[1]), np.float32)
        return self._logits[:num_rows]


def open_runner(
    architecture: Architecture,
    model_dir: Path,
    *,
    num_blocks: int,
    threads: int,
    max_model_len: int,
    instruction_set: str = "",
    head: DraftHead | None = None,
) -> NativeRunner:
    """Opens the model and its head; builds kernels and packs weights if not done yet; raises NotBuilt and
    Misconfigured."""
    packed = ensure_packed(architecture, model_dir, GROUP_SIZE)
    model = NativeModel(
        architecture,
        packed,
        num_blocks=num_blocks,
        threads=threads,
        max_model_len=max_model_len,
        instruction_set=instruction_set,
        head_bytes=head_bytes(head.architecture) if head else 0,
    )
    if head is None:
        return NativeRunner(model, architecture)
    native = NativeHead(model, packed, architecture, head, max_model_len=max_model_len, instruction_set=instruction_set)
    drafter = HeadDrafter(native, max_len=max_model_len)
    drafter.warm_up()
    return NativeRunner(model, architecture, drafter)


def to_rows(batch: Batch, adapters: Handles | None = None) -> Rows:
    """The batch as the arrays that the kernels take; ``adapters`` are those of its rows."""
    spans = batch.spans
    starts = [0, *accumulate(len(span.token_ids) for span in spans)]
    return Rows(
        tokens=_ints([token_id for span in spans for token_id in span.token_ids]),
        positions=np.concatenate([np.arange(span.first, span.end, dtype=np.int32) for span in spans]),
        span_starts=_ints(starts),
        block_ids=_ints([block_id for span in spans for block_id in span.block_ids]),
        table_starts=_ints([0, *accumulate(len(span.block_ids) for span in spans)]),
        outputs=_ints(batch.output_rows),
        adapters=adapters,
    )


def _ints(numbers: list[int]) -> Ints:
    return np.array(numbers, np.int32)


def _is_greedy(draw: Draw) -> bool:
    return draw.sampling.temperature <= 0 and draw.sampling.logprobs is None and not is_adjusted(draw)
