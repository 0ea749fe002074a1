"""The live twins' own: their bounds, and that nothing piles up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.adapters.live.memory.accounts import MemoryAccounts
from axon.adapters.live.memory.cache import MemoryCache
from axon.adapters.live.memory.crowds import MemoryCrowds
from axon.adapters.live.memory.expiring import Expiring
from axon.adapters.live.memory.live import open_memory_live
from axon.adapters.live.memory.log import MemoryTokenLog
from axon.adapters.live.memory.shares import MemoryShares
from axon.adapters.live.memory.wakeups import MemoryWakeups
from axon.domain.log.chunk import Chunk
from axon.domain.tenants.account import Bounds, Entry
from axon.errors import DependencyDown
from axon.runtime.clock import FakeClock
from tests.contracts.builders import claim_epoch, make_chunk


async def end(log: MemoryTokenLog, job_id: str, count: int = 1) -> None:
    await log.open(job_id, b"job", reader_ttl_s=None)
    epoch = await claim_epoch(log, job_id, "w1", over=0)
    await log.append([(job_id, make_chunk(1, count, epoch=epoch, terminal="completed"))])


async def test_channels_leave_with_their_listeners() -> None:
    wakeups = MemoryWakeups()

    async def fail_while_listening() -> None:
        async with wakeups.listen("a"), wakeups.listen("a"), wakeups.listen("b"):
            assert wakeups.num_channels == 2
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail_while_listening()
    assert wakeups.num_channels == 0


async def test_a_full_log_forgets_ended_streams_before_it_refuses(clock: FakeClock) -> None:
    log = MemoryTokenLog(clock, MemoryWakeups(), retention_s=100.0, max_streams=2)
    await log.open("running", b"job", reader_ttl_s=None)
    await end(log, "over")
    assert await log.open("new", b"job", reader_ttl_s=None)
    assert await log.read("over", after=0) is None
    with pytest.raises(DependencyDown) as refusal:
        await log.open("one too many", b"job", reader_ttl_s=None)
    assert refusal.value.code == "log_full"


async def test_ended_streams_above_the_byte_bound_leave_oldest_first(clock: FakeClock) -> None:
    log = MemoryTokenLog(clock, MemoryWakeups(), retention_s=100.0, max_kept_bytes=50_000)
    for number in range(10):
        await end(log, f"job{number}", count=100)
    kept = [number for number in range(10) if await log.read(f"job{number}", after=0) is not None]
    assert kept == [8, 9]


async def test_a_refused_member_leaves_no_trace_and_ended_crowds_are_forgotten(clock: FakeClock) -> None:
    crowds = MemoryCrowds(clock)
    for number in range(100):
        await crowds.enter(f"crowd{number}", "a", limit=1, ttl_s=1.0)
        await crowds.enter(f"refused{number}", "a", limit=0, ttl_s=1.0)
    clock.advance(2.0)
    assert await crowds.count("crowd1") == 0
    assert not crowds._sizes
    assert len(crowds._members) == 0


async def test_an_account_that_nobody_touches_is_forgotten(clock: FakeClock) -> None:
    accounts = MemoryAccounts(clock)
    for number in range(10):
        await accounts.admit(f"t{number}", Entry(job_id="a", ttl_s=1.0), Bounds(requests_per_minute=10))
    clock.advance(4000.0)
    await accounts.admit("later", Entry(job_id="a", ttl_s=1.0), Bounds())
    assert len(accounts._accounts) == 1


async def test_the_cache_counts_its_bytes_and_lets_the_soonest_go(clock: FakeClock) -> None:
    cache = MemoryCache(clock, max_bytes=10)
    await cache.put("soon", b"xxxx", ttl_s=1.0)
    await cache.put("later", b"xxxx", ttl_s=5.0)
    await cache.put("later", b"xxxxx", ttl_s=5.0)
    await cache.put("latest", b"xxxxx", ttl_s=9.0)
    assert [await cache.get(key) for key in ("soon", "later", "latest")] == [None, b"xxxxx", b"xxxxx"]
    await cache.put("too big", b"x" * 11, ttl_s=9.0)
    assert await cache.get("too big") is None
    clock.advance(10.0)
    await cache.drop("anything")
    assert cache._num_bytes == 0


async def test_a_pool_with_too_many_tenants_keeps_the_most_served() -> None:
    shares = MemoryShares(max_tenants=10)
    await shares.charge("pool", {f"t{number}": float(number) for number in range(11)})
    counters = await shares.counters("pool", [f"t{number}" for number in range(11)])
    assert len(counters) == 9
    assert "t10" in counters
    assert "t0" not in counters


async def test_losing_everything_loses_it_in_every_port(clock: FakeClock) -> None:
    live = open_memory_live(clock, retention_s=1.0)
    await end(live.log, "job")
    await live.cache.put("k", b"v", ttl_s=1.0)
    live.lose_everything()
    assert await live.log.read("job", after=0) is None
    assert await live.cache.get("k") is None


async def test_a_tail_lost_inside_a_chunk_leaves_its_first_tokens_and_no_marks(clock: FakeClock) -> None:
    log = MemoryTokenLog(clock, MemoryWakeups(), retention_s=1.0)
    await end(log, "job", count=3)
    log.lose_tail("job", 2)
    view = await log.read("job", after=0)
    assert view is not None
    assert (view.last, view.ended) == (2, False)
    assert view.chunks == (Chunk(first=1, epoch=view.epoch, tokens=make_chunk(1, 2).tokens),)


def test_renewing_one_key_for_ever_does_not_grow_the_map(clock: FakeClock) -> None:
    entries: Expiring[str, None] = Expiring(clock, max_entries=10)
    for _ in range(10_000):
        entries.put("k", None, 3600.0)
    assert len(entries._ends) < 100


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.sampled_from("abcdef"), st.floats(0.0, 5.0)),
            st.tuples(st.just("pop"), st.sampled_from("abcdef"), st.just(0.0)),
            st.tuples(st.just("wait"), st.just(""), st.floats(0.0, 5.0)),
        )
    )
)
def test_an_expiring_map_agrees_with_a_plain_one(calls: list[tuple[str, str, float]]) -> None:
    clock = FakeClock(time=0.0)
    entries: Expiring[str, int] = Expiring(clock, max_entries=100)
    plain: dict[str, tuple[float, int]] = {}
    for number, (call, key, seconds) in enumerate(calls):
        if call == "put":
            entries.put(key, number, seconds)
            plain[key] = (clock.monotonic() + seconds, number)
        elif call == "pop":
            entries.pop(key)
            plain.pop(key, None)
        else:
            clock.advance(seconds)
        plain = {key: entry for key, entry in plain.items() if entry[0] > clock.monotonic()}
        assert {key: entries.get(key) for key in "abcdef"} == {key: plain.get(key, (0, None))[1] for key in "abcdef"}
    entries.sweep()
    assert len(entries) == len(plain)
