from axon.adapters.live.memory.cache import MemoryCache
from axon.domain.fleet.cold_start import ColdStart
from axon.registry.cold_starts import ColdStarts
from axon.registry.last_asked import LastAsked
from axon.runtime.clock import FakeClock


async def test_the_last_start_of_a_version_counts_and_a_missing_one_is_unknown(clock: FakeClock) -> None:
    cache = MemoryCache(clock)
    starts = ColdStarts(cache)
    assert await starts.of("small@v1") is None
    for seconds in (9.0, 4.5):
        await starts.put("small@v1", ColdStart(seconds=seconds, at=clock.now()))
    assert await starts.of("small@v1") == ColdStart(seconds=4.5, at=clock.now())
    await cache.put("cold-start/small@v2", b"\xc1", ttl_s=60.0)
    assert await starts.of("small@v2") is None, "one that this release cannot read"


async def test_a_deployment_of_which_nothing_is_known_counts_as_asked_now_and_is_timed_from_then(
    clock: FakeClock,
) -> None:
    asked = LastAsked(MemoryCache(clock))
    lost_at = clock.now()
    assert await asked.of("small", now=lost_at) == lost_at
    clock.advance(30.0)
    assert await asked.of("small", now=clock.now()) == lost_at
    await asked.put("small", clock.now())
    assert await asked.of("small", now=clock.now() + 5.0) == clock.now()
