"""What the draft model has computed is known by block, and forgotten with the block's content."""

from axon.engine.schedule.allocation import Allocation
from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.draft_blocks import DraftBlocks
from axon.engine.schedule.sequence import Sequence
from tests.engine.builders import make_add

SIZE = 4


def admitted(allocation: Allocation, num_tokens: int, id: str = "a", arrival: int = 0) -> Sequence:
    sequence = Sequence(make_add(id, prompt=num_tokens), arrival, SIZE, "salt", 100, 100)
    assert allocation.admit(sequence)
    return sequence


def compute(allocation: Allocation, sequence: Sequence) -> None:
    """The target has computed all tokens of the sequence."""
    sequence.num_computed = sequence.num_settled = sequence.num_tokens
    allocation.publish(sequence, 0, sequence.num_tokens)


def test_a_sequence_with_the_same_prefix_finds_what_was_computed_for_another() -> None:
    allocation = Allocation(BlockPool(20, SIZE))
    blocks = DraftBlocks(allocation.pool)
    first = admitted(allocation, 14)
    assert blocks.num_unseen(first) == 14
    compute(allocation, first)
    blocks.note(first, 10)
    assert blocks.num_unseen(first) == 4
    second = admitted(allocation, 14, "b", 1)
    assert second.block_ids[:3] == first.block_ids[:3]
    assert blocks.num_unseen(second) == 14 - 8, "whole blocks count, of which the draft model has two"


def test_the_last_token_is_computed_even_if_its_block_is_known() -> None:
    allocation = Allocation(BlockPool(20, SIZE))
    blocks = DraftBlocks(allocation.pool)
    longer = admitted(allocation, 13)
    compute(allocation, longer)
    blocks.note(longer, 13)
    assert blocks.num_unseen(longer) == 1
    shorter = admitted(allocation, 12, "b", 1)
    shorter.block_ids = longer.block_ids[:3]
    assert blocks.num_unseen(shorter) == 1


def test_a_block_that_was_given_to_another_sequence_is_unknown_again() -> None:
    allocation = Allocation(BlockPool(4, SIZE))
    blocks = DraftBlocks(allocation.pool)
    first = admitted(allocation, 14)
    compute(allocation, first)
    blocks.note(first, 14)
    allocation.free(first)
    assert first.num_seen == 0
    again = admitted(allocation, 14)
    assert blocks.num_unseen(again) == 2, "the blocks were still there"
    allocation.free(again)
    other = Sequence(make_add("b", prompt=[9] * 14), 1, SIZE, "salt", 100, 100)
    assert allocation.admit(other)
    assert blocks.num_unseen(other) == 14
    allocation.free(other)
    last = admitted(allocation, 14, arrival=2)
    assert blocks.num_unseen(last) == 14
