"""Slots are found by key, given up by age, and kept while something is copied."""

import pytest

from axon.engine.schedule.slot_cache import SlotCache


def put(cache: SlotCache, key: bytes) -> int:
    kept, _ = cache.take(key)
    kept.is_ready = True
    cache.unpin(kept)
    return kept.slot


def test_the_least_recently_used_is_given_up() -> None:
    cache = SlotCache(2)
    first, second = put(cache, b"a"), put(cache, b"b")
    cache.touch(b"a")
    kept, given_up = cache.take(b"c")
    assert (kept.slot, given_up) == (second, b"b")
    assert cache.find(b"a") is not None
    assert first != second
    cache.check()


def test_a_pinned_content_is_not_given_up() -> None:
    cache = SlotCache(2)
    put(cache, b"a")
    put(cache, b"b")
    oldest = cache.find(b"a")
    assert oldest is not None
    cache.pin(oldest)
    assert cache.take(b"c")[1] == b"b"
    assert not cache.can_take
    cache.check()


def test_a_slot_dropped_while_it_is_pinned_is_free_with_its_last_pin() -> None:
    cache = SlotCache(1)
    kept, _ = cache.take(b"a")
    cache.pin(kept)
    assert cache.drop(b"a") is None
    assert cache.find(b"a") is None
    cache.check()
    assert not cache.unpin(kept)
    assert not cache.can_take
    assert cache.unpin(kept)
    assert cache.take(b"a")[0].slot == kept.slot


def test_contents_that_are_there_at_the_start_fill_their_slots() -> None:
    cache = SlotCache(4)
    cache.fill([(b"a", 2), (b"b", 0), (b"b", 3), (b"z", 9)])
    cache.check()
    a, b = cache.find(b"a"), cache.find(b"b")
    assert a is not None
    assert b is not None
    assert (a.slot, b.slot, len(cache), cache.num_free) == (2, 3, 2, 2)
    assert {put(cache, b"c"), put(cache, b"d")} == {0, 1}


def test_check_notices_a_content_that_nobody_brings() -> None:
    cache = SlotCache(1)
    kept, _ = cache.take(b"a")
    kept.num_pins = 0
    with pytest.raises(AssertionError):
        cache.check()
