"""A row is its own on the native kernels, bit by bit: not the batch's, the chunk's, the thread's or the machine's."""

from pathlib import Path

import numpy as np
import pytest

from axon.engine.native import library
from axon.engine.native.model import Floats
from tests.engine.native.builders import MAX_TOKENS, Tiny, make_tokens


def alone(tiny: Tiny, tokens: list[int]) -> Floats:
    return tiny.logits((0, 0, tokens))[0]


@pytest.mark.long
@pytest.mark.parametrize("size", [2, 3, 5, 8, 9, 13, 16, 32])
def test_a_decode_in_a_batch_equals_the_row_of_a_whole_prefill(tiny: Tiny, size: int) -> None:
    lengths = [(index * 7) % 60 + 2 for index in range(size)]
    texts = [make_tokens(index, length) for index, length in enumerate(lengths)]
    expected = [alone(tiny, text)[-1] for text in texts]
    for index, text in enumerate(texts):
        tiny.logits((index, 0, text[:-1]))
    decoded = tiny.logits(*((index, len(text) - 1, text[-1:]) for index, text in enumerate(texts)))
    for row, wanted in zip(decoded, expected, strict=True):
        assert np.array_equal(row[0], wanted)


@pytest.mark.long
@pytest.mark.parametrize("chunk", [1, 3, 16, 17, 50])
def test_a_chunked_prefill_beside_decodes_equals_a_whole_one(tiny: Tiny, chunk: int) -> None:
    text, other = make_tokens(1, 70), make_tokens(2, MAX_TOKENS)
    expected, expected_other = alone(tiny, text), alone(tiny, other)
    tiny.logits((1, 0, other[:5]))
    for index, first in enumerate(range(0, len(text), chunk)):
        at = 5 + index
        pieces = [(2, first, text[first : first + chunk])]
        if at < len(other):
            pieces.append((1, at, other[at : at + 1]))
        rows = tiny.logits(*pieces)
        assert np.array_equal(rows[0], expected[first : first + chunk])
        if at < len(other):
            assert np.array_equal(rows[1][0], expected_other[at])


LONG_BLOCKS = 34
"""Of a past in three parts of 256 tokens, the last a small one."""


@pytest.fixture(scope="module")
def long_rows() -> dict[Path, Floats]:
    """By model: the rows of a long text in one prefill, by plain code on one thread."""
    return {}


def long_prefill(folder: Path, known: dict[Path, Floats], text: list[int]) -> Floats:
    if folder not in known:
        plain = Tiny(folder, instruction_set="scalar", num_blocks=LONG_BLOCKS)
        known[folder] = plain.logits((0, 0, text))[0]
        plain.model.close()
    return known[folder]


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_long_past_is_the_same_however_it_is_shared_out(
    model_folder: Path, instruction_set: str, threads: int, long_rows: dict[Path, Floats]
) -> None:
    text = make_tokens(11, 16 * LONG_BLOCKS)
    expected = long_prefill(model_folder, long_rows, text)
    tiny = Tiny(model_folder, threads=threads, instruction_set=instruction_set, num_blocks=LONG_BLOCKS)
    at = 0
    for end in (254, 255, 256, 257, 260, 510, 513, 514, 543):  # alone, two to four at once as drafts are, many
        assert np.array_equal(tiny.logits((0, at, text[at:end]))[0], expected[at:end])
        at = end
    tiny.logits((1, 0, text[:100]))
    beside, short = tiny.logits((0, at, text[at:]), (1, 100, text[100:101]))
    assert np.array_equal(beside, expected[at:])
    assert np.array_equal(short, expected[100:101])
    tiny.model.close()


def test_many_rows_equal_few(tiny: Tiny) -> None:
    texts = [make_tokens(seed, 90) for seed in range(3)]
    together = tiny.logits(*((index, 0, text) for index, text in enumerate(texts)))
    for rows, text in zip(together, texts, strict=True):
        assert np.array_equal(rows, alone(tiny, text))


def test_blocks_of_another_sequence_leave_no_trace(tiny: Tiny) -> None:
    text = make_tokens(4, 20)
    expected = alone(tiny, text)
    alone(tiny, make_tokens(5, MAX_TOKENS))
    assert np.array_equal(alone(tiny, text), expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_instruction_set_and_number_of_threads_gives_the_same_bits(
    model_folder: Path, instruction_set: str, threads: int
) -> None:
    reference = Tiny(model_folder, instruction_set="scalar")
    tiny = Tiny(model_folder, threads=threads, instruction_set=instruction_set)
    text, other = make_tokens(8, 50), make_tokens(9, 7)
    for ours, theirs in zip(
        tiny.logits((0, 0, text), (1, 0, other)), reference.logits((0, 0, text), (1, 0, other)), strict=True
    ):
        assert np.array_equal(ours, theirs)
    reference.model.close()
    tiny.model.close()


def test_an_instruction_set_is_named_or_the_best(instruction_set: str) -> None:
    opened = library.load()
    assert library.instruction_set(opened, instruction_set) == instruction_set
    here = [name for name in library.INSTRUCTION_SETS if library.instruction_set(opened, name)]
    assert library.instruction_set(opened) == here[0]
