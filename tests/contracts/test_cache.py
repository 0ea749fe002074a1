"""The cache's contract. Missing says nothing: the value can be had again elsewhere."""

import pytest

from axon.ports.live import Cache, Live
from tests.contracts.backends import LiveBackend


@pytest.fixture
def cache(live: Live) -> Cache:
    return live.cache


async def test_a_value_comes_back_byte_for_byte(cache: Cache) -> None:
    value = bytes(range(256))
    assert await cache.put("k", value, ttl_s=10.0)
    assert await cache.get("k") == value


async def test_an_empty_value_is_a_value(cache: Cache) -> None:
    await cache.put("k", b"", ttl_s=10.0)
    assert await cache.get("k") == b""
    assert not await cache.put("k", b"x", ttl_s=10.0, only_new=True)


async def test_an_unknown_key_is_missing(cache: Cache) -> None:
    assert await cache.get("k") is None
    await cache.drop("k")


async def test_a_value_is_gone_after_its_time(lives: LiveBackend, cache: Cache) -> None:
    await cache.put("k", b"v", ttl_s=0.1)
    await lives.pass_time(0.2)
    assert await cache.get("k") is None


async def test_a_second_put_replaces_value_and_time(lives: LiveBackend, cache: Cache) -> None:
    await cache.put("k", b"old", ttl_s=0.1)
    assert await cache.put("k", b"new", ttl_s=10.0)
    await lives.pass_time(0.2)
    assert await cache.get("k") == b"new"


async def test_only_the_first_of_two_new_values_is_kept(cache: Cache) -> None:
    assert await cache.put("k", b"first", ttl_s=10.0, only_new=True)
    assert not await cache.put("k", b"second", ttl_s=10.0, only_new=True)
    assert await cache.get("k") == b"first"


async def test_a_key_is_new_again_when_its_value_is_over_or_dropped(lives: LiveBackend, cache: Cache) -> None:
    await cache.put("k", b"a", ttl_s=0.1, only_new=True)
    await lives.pass_time(0.2)
    assert await cache.put("k", b"b", ttl_s=10.0, only_new=True)
    await cache.drop("k")
    assert await cache.put("k", b"c", ttl_s=10.0, only_new=True)


async def test_after_losing_everything_every_key_is_missing(lives: LiveBackend, cache: Cache) -> None:
    await cache.put("k", b"v", ttl_s=10.0)
    await lives.lose_everything()
    assert await cache.get("k") is None
