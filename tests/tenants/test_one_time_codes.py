"""One-time codes: good once, for a minute, for whoever comes first."""

import asyncio

import pytest

from axon.adapters.live.memory.cache import MemoryCache
from axon.runtime.clock import FakeClock
from axon.tenants.one_time_codes import LIFETIME_S, OneTimeCodes


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def codes(clock: FakeClock) -> OneTimeCodes:
    return OneTimeCodes(MemoryCache(clock), clock)


async def test_a_code_is_good_once(codes: OneTimeCodes) -> None:
    code = await codes.issue("k0000001")
    assert await codes.redeem(code) == "k0000001"
    assert await codes.redeem(code) is None


async def test_of_many_at_once_one_gets_the_key(codes: OneTimeCodes) -> None:
    code = await codes.issue("k0000001")
    found = await asyncio.gather(*(codes.redeem(code) for _ in range(20)))
    assert sorted(map(str, found)) == ["None"] * 19 + ["k0000001"]


@pytest.mark.parametrize(("after_s", "key_id"), [(LIFETIME_S - 0.1, "k0000001"), (LIFETIME_S, None)])
async def test_a_code_is_good_for_a_minute(
    codes: OneTimeCodes, clock: FakeClock, after_s: float, key_id: str | None
) -> None:
    code = await codes.issue("k0000001")
    clock.advance(after_s)
    assert await codes.redeem(code) == key_id


async def test_a_cache_that_forgets_late_changes_nothing() -> None:
    clock = FakeClock()
    codes = OneTimeCodes(MemoryCache(FakeClock()), clock)  # whose time stands still
    code = await codes.issue("k0000001")
    clock.advance(LIFETIME_S)
    assert await codes.redeem(code) is None


@pytest.mark.parametrize("guess", ["", "x" * 32, "x" * 1_000_000, "../one-time-code/", "\x00", "é"])
async def test_a_guess_is_nothing(codes: OneTimeCodes, guess: str) -> None:
    await codes.issue("k0000001")
    assert await codes.redeem(guess) is None


async def test_codes_differ_and_are_not_kept_as_they_are(clock: FakeClock) -> None:
    kept: list[str] = []

    class Spied(MemoryCache):
        async def put(self, key: str, value: bytes, *, ttl_s: float, only_new: bool = False) -> bool:
            kept.append(f"{key} {value!r}")
            return await super().put(key, value, ttl_s=ttl_s, only_new=only_new)

    codes = OneTimeCodes(Spied(clock), clock)
    issued = [await codes.issue("k0000001") for _ in range(10)]
    assert len(set(issued)) == 10
    assert not [code for code in issued if code in " ".join(kept)]
