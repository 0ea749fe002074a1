"""A revocation counts everywhere at once, and reaches the store when it can be reached."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path

import pytest

from axon.adapters.live.memory.cache import MemoryCache
from axon.adapters.store.sqlite import SqliteStore
from axon.domain.audit import AuditEntry
from axon.domain.tenants.access import Access
from axon.domain.tenants.key import Key
from axon.errors import DependencyDown, Unavailable
from axon.ports.store import KeyStore
from axon.runtime.clock import FakeClock
from axon.tenants.keyring import Keyring
from axon.tenants.revocations import Revocations
from tests.contracts.builders import make_key


class Keys:
    """A store's keys, which can go away."""

    def __init__(self, keys: KeyStore) -> None:
        self._keys = keys
        self.is_away = False

    async def access(self, key_id: str) -> Access | None:
        raise AssertionError

    async def touch(self, used_at: Mapping[str, float]) -> None:
        raise AssertionError

    async def add(self, key: Key, *, entry: AuditEntry | None = None) -> None:
        await self._keys.add(key, entry=entry)

    async def find(self, key_id: str) -> Key | None:
        return await self._keys.find(key_id)

    async def all(self, *, tenant: str | None = None) -> Sequence[Key]:
        raise AssertionError

    async def revoked(self, key_ids: Collection[str]) -> frozenset[str]:
        return await self._keys.revoked(key_ids)

    async def rotate(self, new: Key, *, until: float, entry: AuditEntry | None = None) -> bool:
        raise AssertionError

    async def revoke(self, key_id: str, *, at: float, entry: AuditEntry | None = None) -> bool:
        if self.is_away:
            raise DependencyDown
        return await self._keys.revoke(key_id, at=at, entry=entry)


class Cache(MemoryCache):
    is_away = False

    async def put(self, key: str, value: bytes, *, ttl_s: float, only_new: bool = False) -> bool:
        if self.is_away:
            raise DependencyDown
        return await super().put(key, value, ttl_s=ttl_s, only_new=only_new)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cache(clock: FakeClock) -> Cache:
    return Cache(clock)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "axon.db")
    await store.open()
    await store.keys.add(make_key())
    yield store
    await store.aclose()


@pytest.fixture
def keys(store: SqliteStore) -> Keys:
    return Keys(store.keys)


@pytest.fixture
def revocations(cache: Cache, keys: Keys, clock: FakeClock) -> Revocations:
    return Revocations(cache, keys, clock)


async def test_a_revocation_is_in_the_store_and_in_live(revocations: Revocations, keys: Keys, clock: FakeClock) -> None:
    assert not await revocations.revoked("k0000001")
    assert await revocations.revoke("k0000001")
    assert await revocations.revoked("k0000001")
    assert await keys.find("k0000001") == make_key(revoked_at=clock.now())


async def test_who_watches_many_keys_hears_of_a_revocation_made_elsewhere(
    revocations: Revocations, cache: Cache, keys: Keys, clock: FakeClock
) -> None:
    watching = Revocations(cache, keys, clock)
    await keys.add(make_key(id="k0000002"))
    both = ["k0000001", "k0000002"]
    assert await watching.marked(both) == frozenset()
    clock.advance(60.0)
    assert await watching.marked(both) == frozenset()
    keys.is_away = True
    await revocations.revoke("k0000002")
    assert await watching.marked(both) == {"k0000002"}
    keys.is_away = False
    await revocations.revoke("k0000001")
    assert await watching.marked(both) == set(both)
    assert await watching.stored(both) == {"k0000001"}


async def test_an_unknown_key_leaves_no_mark(revocations: Revocations) -> None:
    assert not await revocations.revoke("nothing0")
    assert not await revocations.revoked("nothing0")


async def test_while_the_store_is_away_it_counts_at_once_and_is_written_later_with_its_time(
    revocations: Revocations, keys: Keys, clock: FakeClock
) -> None:
    at, keys.is_away = clock.now(), True
    assert await revocations.revoke("k0000001")
    assert await revocations.revoked("k0000001")
    clock.advance(20 * 3600.0)
    with pytest.raises(DependencyDown):
        await revocations.look()
    clock.advance(20 * 3600.0)
    assert await revocations.revoked("k0000001")
    keys.is_away = False
    clock.advance(1.0)
    await revocations.look()
    assert await keys.find("k0000001") == make_key(revoked_at=at)


async def test_who_revoked_a_key_while_the_store_was_away_is_in_the_audit_trail_later(
    revocations: Revocations, keys: Keys, store: SqliteStore, clock: FakeClock
) -> None:
    keyring = Keyring(keys, revocations.revoke, lambda: b"", clock)
    at, keys.is_away = clock.now(), True
    await keyring.revoke("k0000001", actor="k0000009 ada lovelace/größer%20_")
    keys.is_away = False
    clock.advance(60.0)
    for _ in range(2):
        await revocations.look()
    page = await store.audit.page(limit=9)
    assert page is not None
    assert [(each.actor, each.name, each.action, each.at) for each in page.entries] == [
        ("k0000009 ada lovelace/größer%20_", "k0000001", "revoke", at)
    ]


async def test_what_was_written_is_not_written_again(revocations: Revocations, keys: Keys, cache: Cache) -> None:
    keys.is_away = True
    await revocations.revoke("k0000001")
    keys.is_away = False
    await revocations.look()
    keys.is_away = True
    await revocations.look()


async def test_while_nothing_waits_a_look_reads_one_slot_and_finds_what_was_left_in_another_within_a_minute(
    revocations: Revocations, keys: Keys, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    get = cache.get

    async def counted(key: str) -> bytes | None:
        read.append(key)
        return await get(key)

    monkeypatch.setattr(cache, "get", counted)
    await revocations.look()
    assert len(read) == 32
    keys.is_away = True
    for key_id in ("k0000002", "k0000001"):
        await revocations.revoke(key_id)
    await cache.drop("revoking/0")  # the first was written by a control that died before it came to the second
    keys.is_away = False
    read.clear()
    for _ in range(29):
        await revocations.look()
    assert set(read) == {"revoking/0"}
    await revocations.look()
    found = await keys.find("k0000001")
    assert found is not None
    assert found.revoked_at is not None


async def test_while_live_is_away_the_store_is_enough(revocations: Revocations, keys: Keys, cache: Cache) -> None:
    cache.is_away = True
    assert await revocations.revoke("k0000001")
    found = await keys.find("k0000001")
    assert found is not None
    assert found.revoked_at is not None


async def test_with_both_away_nobody_is_told_that_it_worked(revocations: Revocations, keys: Keys, cache: Cache) -> None:
    cache.is_away = keys.is_away = True
    with pytest.raises(DependencyDown):
        await revocations.revoke("k0000001")


async def test_what_waits_for_the_store_is_bounded(revocations: Revocations, keys: Keys) -> None:
    keys.is_away = True
    for number in range(32):
        assert await revocations.revoke(f"k{number:07}")
    with pytest.raises(Unavailable):
        await revocations.revoke("one-more")
