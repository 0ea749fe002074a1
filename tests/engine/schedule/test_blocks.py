"""Blocks are handed out, shared, found again and never lost."""

import pytest

from axon.engine.schedule.blocks import BlockPool, chain_hashes


def hashes_of(token_ids: list[int], *, salt: str = "", block_size: int = 4) -> list[bytes]:
    hashes: list[bytes] = []
    chain_hashes(hashes, token_ids, len(token_ids) // block_size, block_size, salt=salt)
    return hashes


def test_a_block_given_back_unpublished_is_free_again() -> None:
    pool = BlockPool(4, 4)
    taken = pool.take([], 3)
    pool.give_back(taken)
    assert (pool.num_free, pool.num_used, pool.num_cached) == (4, 0, 0)
    pool.check([])


def test_a_published_block_stays_findable_after_it_is_given_back() -> None:
    pool = BlockPool(4, 4)
    [block] = pool.take([], 1)
    [block_hash] = hashes_of([1, 2, 3, 4])
    pool.publish(block, block_hash)
    pool.give_back([block])
    assert pool.find([block_hash]) == [block]
    assert (pool.num_free, pool.num_cached) == (3, 1)
    pool.check([])


def test_a_shared_block_is_used_until_its_last_holder_leaves() -> None:
    pool = BlockPool(4, 4)
    [block] = pool.take([], 1)
    pool.publish(block, b"h")
    second = pool.take(pool.find([b"h"]), 0)
    pool.check([[block], second])
    pool.give_back([block])
    assert pool.num_used == 1
    pool.give_back(second)
    assert (pool.num_used, pool.num_cached) == (0, 1)


def test_the_least_recently_used_cached_block_is_forgotten_first() -> None:
    pool = BlockPool(3, 4)
    blocks = pool.take([], 3)
    for block in blocks:
        pool.publish(block, bytes([block]))
    pool.give_back([blocks[1]])
    pool.give_back([blocks[0]])
    pool.give_back([blocks[2]])
    [taken] = pool.take([], 1)
    assert taken == blocks[1]
    assert pool.find([bytes([blocks[1]])]) == []
    pool.check([[taken]])


def test_the_end_of_a_chain_is_forgotten_before_its_head() -> None:
    pool = BlockPool(3, 4)
    chain = pool.take([], 3)
    for block in chain:
        pool.publish(block, bytes([block]))
    pool.give_back(chain)
    assert pool.take([], 1) == [chain[2]]


def test_found_blocks_do_not_count_as_room_for_new_ones() -> None:
    pool = BlockPool(2, 4)
    blocks = pool.take([], 2)
    pool.publish(blocks[0], b"h")
    pool.give_back(blocks)
    found = pool.find([b"h"])
    assert pool.can_take(found, 1)
    assert not pool.can_take(found, 2)
    assert pool.can_take([], 2)


def test_equal_tokens_of_different_tenants_have_different_hashes() -> None:
    tokens = list(range(8))
    assert hashes_of(tokens, salt="a") == hashes_of(tokens, salt="a")
    assert set(hashes_of(tokens, salt="a")).isdisjoint(hashes_of(tokens, salt="b"))


def test_a_hash_covers_everything_before_its_block() -> None:
    assert hashes_of([1, 2, 3, 4, 5, 6, 7, 8])[1] != hashes_of([9, 2, 3, 4, 5, 6, 7, 8])[1]


def test_check_notices_a_leak() -> None:
    pool = BlockPool(4, 4)
    pool.take([], 1)
    with pytest.raises(AssertionError, match="miscounted"):
        pool.check([])


def test_a_forgotten_block_is_found_no_more_and_free_once_nobody_holds_it() -> None:
    pool = BlockPool(4, 4)
    used, cached = pool.take([], 2)
    pool.publish(used, b"u")
    pool.publish(cached, b"c")
    pool.give_back([cached])
    for key in (b"u", b"c", b"unknown"):
        pool.forget(key)
    assert pool.find([b"u"]) == pool.find([b"c"]) == []
    assert (pool.num_free, pool.num_used, pool.num_cached) == (3, 1, 0)
    pool.check([[used]])
    pool.give_back([used])
    assert pool.num_free == 4
    pool.check([])
