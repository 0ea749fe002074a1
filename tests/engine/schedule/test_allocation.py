"""Blocks given to sequences: what is cached is found, what is missing is new, and a tenant keeps to its share."""

from hypothesis import given
from hypothesis import strategies as st

from axon.engine.schedule.allocation import Allocation
from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.sequence import Sequence
from tests.engine.builders import make_add

BLOCK_SIZE = 4


def make_allocation(blocks: int = 8) -> Allocation:
    return Allocation(BlockPool(blocks, BLOCK_SIZE))


def make_sequence(
    prompt: list[int] | int, *, arrival: int = 0, tenant: str = "x", max_blocks: int = 8, max_tokens: int = 50
) -> Sequence:
    add = make_add(str(arrival), prompt=prompt, tenant=tenant, max_tokens=max_tokens)
    return Sequence(add, arrival, BLOCK_SIZE, tenant, max_blocks, max_len=1000)


def compute(allocation: Allocation, sequence: Sequence) -> None:
    """As if a step had computed all that is known of it."""
    first = sequence.num_computed
    sequence.num_computed = sequence.num_settled = sequence.num_tokens
    allocation.publish(sequence, first, sequence.num_tokens)


def test_a_sequence_is_given_blocks_for_all_its_tokens_at_once() -> None:
    allocation, sequence = make_allocation(), make_sequence(9)
    assert allocation.admit(sequence)
    assert (len(sequence.block_ids), sequence.num_computed, sequence.num_admissions) == (3, 0, 1)


def test_it_is_given_none_where_the_pool_has_too_few() -> None:
    allocation, sequence = make_allocation(blocks=2), make_sequence(9)
    assert not allocation.could_admit(sequence, [])
    assert not allocation.admit(sequence)
    assert sequence.block_ids == []
    assert allocation.pool.num_free == 2


def test_computed_blocks_are_found_by_the_next_sequence_but_for_its_last_token() -> None:
    allocation, first = make_allocation(), make_sequence(8)
    allocation.admit(first)
    compute(allocation, first)
    second = make_sequence(8, arrival=1)
    assert allocation.num_to_compute(second) == 4, "the block with the last token is computed again, for its logits"
    assert allocation.admit(second)
    assert second.block_ids[0] == first.block_ids[0]
    assert second.block_ids[1] != first.block_ids[1]
    assert second.num_computed == 4


def test_blocks_of_another_tenant_are_not_found() -> None:
    allocation, first = make_allocation(), make_sequence(9)
    allocation.admit(first)
    compute(allocation, first)
    assert allocation.num_to_compute(make_sequence(9, arrival=1, tenant="y")) == 9


def test_the_next_hash_of_one_is_what_another_is_about_to_compute() -> None:
    allocation, first, second = make_allocation(), make_sequence(9), make_sequence(9, arrival=1)
    allocation.admit(first)
    assert allocation.next_hash(second) == allocation.hashes_ahead(first)[0]
    compute(allocation, first)
    assert allocation.hashes_ahead(first) == []
    assert allocation.next_hash(second) is None, "all its full blocks are found"


def test_one_that_kept_its_blocks_looks_for_none() -> None:
    allocation, sequence = make_allocation(), make_sequence(9)
    allocation.admit(sequence)
    assert allocation.next_hash(sequence) is None
    assert allocation.num_to_compute(sequence) == 9


def test_a_tenant_is_held_to_its_share_even_where_the_pool_has_more() -> None:
    allocation, first = make_allocation(), make_sequence(8, max_blocks=3)
    allocation.admit(first)
    second = make_sequence([7] * 8, arrival=1, max_blocks=3)
    assert allocation.could_admit(second, [])
    assert not allocation.is_within_share(second)
    assert not allocation.admit(second)
    assert allocation.may_extend(first, 1)
    assert not allocation.may_extend(first, 2)
    assert allocation.can_extend(2)


def test_blocks_that_a_parked_sequence_keeps_count_as_given_up_by_those_who_ask() -> None:
    allocation, parked = make_allocation(blocks=4), make_sequence(12)
    allocation.admit(parked)
    asking = make_sequence([7] * 8, arrival=1)
    assert not allocation.could_admit(asking, [])
    assert allocation.could_admit(asking, [parked])
    assert not allocation.could_admit(asking, [asking]), "its own blocks are not another's to give up"


def test_only_the_tenants_own_parked_sequences_make_its_share_larger() -> None:
    allocation, parked = make_allocation(), make_sequence(8, max_blocks=3)
    allocation.admit(parked)
    stranger = make_sequence(8, arrival=1, tenant="y")
    allocation.admit(stranger)
    asking = make_sequence([7] * 8, arrival=2, max_blocks=3)
    assert not allocation.is_within_share(asking, [stranger])
    assert allocation.is_within_share(asking, [stranger, parked])


def test_one_that_kept_its_blocks_is_admitted_to_what_it_lacks_and_goes_on_where_it_was() -> None:
    allocation, sequence = make_allocation(), make_sequence(7)
    allocation.admit(sequence)
    compute(allocation, sequence)
    sequence.token_ids += [1, 2]
    kept = list(sequence.block_ids)
    assert allocation.admit(sequence)
    assert sequence.block_ids[:2] == kept
    assert (len(sequence.block_ids), sequence.num_computed, sequence.num_admissions) == (3, 7, 1)


def test_freed_it_has_nothing_computed_but_finds_its_blocks_again() -> None:
    allocation, sequence = make_allocation(), make_sequence(9)
    allocation.admit(sequence)
    compute(allocation, sequence)
    allocation.free(sequence)
    assert (sequence.block_ids, sequence.num_computed, sequence.num_settled) == ([], 0, 0)
    assert allocation.pool.num_cached == 2
    assert allocation.admit(sequence)
    assert (sequence.num_computed, sequence.num_admissions) == (8, 2)


@given(
    st.lists(
        st.tuples(st.sampled_from(["admit", "extend", "compute", "free"]), st.integers(0, 5)), min_size=1, max_size=40
    ),
    st.integers(3, 12),
    st.lists(st.integers(1, 14), min_size=6, max_size=6),
)
def test_no_block_is_lost_and_no_share_exceeded_whatever_is_done(
    deeds: list[tuple[str, int]], blocks: int, lengths: list[int]
) -> None:
    allocation = make_allocation(blocks)
    sequences = [
        make_sequence(
            [index % 2, *range(length - 1)], arrival=index, tenant="xy"[index % 2], max_blocks=blocks * 2 // 3
        )
        for index, length in enumerate(lengths)
    ]
    for deed, index in deeds:
        sequence = sequences[index]
        if deed == "admit" and not sequence.block_ids:
            was_possible = allocation.could_admit(sequence, []) and allocation.is_within_share(sequence)
            assert allocation.admit(sequence) == was_possible
        elif deed == "extend" and allocation.can_extend(1) and allocation.may_extend(sequence, 1):
            if sequence.block_ids:
                allocation.extend(sequence, 1)
        elif deed == "compute" and sequence.block_ids:
            compute(allocation, sequence)
        elif deed == "free":
            allocation.free(sequence)
        allocation.pool.check(each.block_ids for each in sequences)
        assert all(allocation.pool.num_used_by(tenant) <= blocks * 2 // 3 for tenant in "xy")
