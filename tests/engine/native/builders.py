"""Small native models over random folders, and batches for them."""

from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np

from axon.domain.sampling import Sampling
from axon.engine.batch import Draw, Span
from axon.engine.load.architecture import Architecture, read_architecture
from axon.engine.native.build import GROUP_SIZE
from axon.engine.native.model import Floats, Ints, NativeModel, Rows
from axon.engine.native.packed_weights import ensure_packed

NUM_BLOCKS = 256
BLOCKS_PER_SEQUENCE = 6
MAX_TOKENS = 16 * BLOCKS_PER_SEQUENCE
GREEDY = Draw(sampling=Sampling(max_tokens=1, temperature=0.0), seed=0, choice=0, position=0)


class Tiny:
    """A native model with the calls the tests need."""

    def __init__(
        self, folder: Path, *, threads: int = 1, instruction_set: str = "", num_blocks: int = BLOCKS_PER_SEQUENCE
    ) -> None:
        self.architecture: Architecture = read_architecture(folder)
        self._num_blocks = num_blocks
        self.model = NativeModel(
            self.architecture,
            ensure_packed(self.architecture, folder, GROUP_SIZE),
            num_blocks=NUM_BLOCKS,
            threads=threads,
            max_model_len=16 * num_blocks,
            instruction_set=instruction_set,
        )

    def logits(self, *pieces: tuple[int, int, list[int]]) -> list[Floats]:
        """Computes (sequence, first position, tokens) pieces in one step; returns the logits of all their rows."""
        rows = make_rows(pieces, self._num_blocks)
        logits = np.empty((len(rows.tokens), self.architecture.vocab_size), np.float32)
        best = self.model.step(rows, logits)
        assert best.tolist() == logits.argmax(axis=1).tolist()
        return [logits[start:end] for start, end in zip(rows.span_starts, rows.span_starts[1:], strict=False)]


def make_rows(pieces: tuple[tuple[int, int, list[int]], ...], num_blocks: int = BLOCKS_PER_SEQUENCE) -> Rows:
    """Every row is an output; blocks of a sequence are its own and out of order."""
    tables = [blocks_of(sequence, num_blocks) for sequence, _, _ in pieces]
    num_rows = sum(len(tokens) for _, _, tokens in pieces)
    return Rows(
        tokens=_ints([token for _, _, tokens in pieces for token in tokens]),
        positions=_ints([first + index for _, first, tokens in pieces for index in range(len(tokens))]),
        span_starts=_ints([0, *accumulate(len(tokens) for _, _, tokens in pieces)]),
        block_ids=_ints([block for table in tables for block in table]),
        table_starts=_ints([index * num_blocks for index in range(len(tables) + 1)]),
        outputs=_ints(list(range(num_rows))),
    )


def blocks_of(sequence: int, num_blocks: int = BLOCKS_PER_SEQUENCE) -> list[int]:
    return [(sequence * num_blocks + index) * 37 % NUM_BLOCKS for index in range(num_blocks)]


def make_span(sequence: int, first: int, token_ids: list[int], draw: Draw | None = GREEDY, **sampling: object) -> Span:
    """A span over the sequence's own blocks."""
    if draw is not None and sampling:
        draw = replace(draw, sampling=replace(draw.sampling, **sampling))  # type: ignore[arg-type]
    return Span(
        id=str(sequence), first=first, token_ids=tuple(token_ids), block_ids=tuple(blocks_of(sequence)), draw=draw
    )


def make_tokens(seed: int, count: int, vocab_size: int = 250) -> list[int]:
    tokens: list[int] = np.random.default_rng(seed).integers(0, vocab_size, count).tolist()
    return tokens


def _ints(numbers: list[int]) -> Ints:
    return np.array(numbers, np.int32)
