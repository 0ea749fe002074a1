"""The worker's lease: it holds while the worker lives, however busy its loop is, and not for one that hangs."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import pytest

from axon.errors import DependencyDown
from axon.ownership.liveness import Liveness
from axon.ports.live import Leases
from axon.runtime.clock import SystemClock
from axon.worker.config import WorkerConfig
from axon.worker.lease import LoopLease, ThreadLease, make_lease
from tests.contracts.backends import memory_lives
from tests.contracts.redis_backend import RedisLives, redis_lives

CONFIG = WorkerConfig(lease_s=0.4, renew_s=0.05)
CLOCK = SystemClock()


class Noted:
    """Leases that note who asks for what, in which thread."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self.dropped: list[str] = []
        self.threads: set[str] = set()
        self.down = False
        self.broken = False

    async def hold(self, owner: str, ttl_s: float) -> None:
        self.threads.add(threading.current_thread().name)
        if self.down:
            raise DependencyDown("away")
        if self.broken:
            raise LookupError("a bug")
        self.held.append(owner)

    async def alive(self, owners: Sequence[str]) -> frozenset[str]:
        return frozenset()

    async def drop(self, owner: str) -> None:
        self.dropped.append(owner)

    async def run_id(self) -> str:
        return "1"

    def for_thread(self, *, deadline_s: float) -> Callable[[], AbstractAsyncContextManager[Leases]]:
        @asynccontextmanager
        async def connected() -> AsyncIterator[Leases]:
            yield self

        return connected


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60.0):
        while not true():  # noqa: ASYNC110 - another thread makes it true
            await asyncio.sleep(0.01)


def block(until: Callable[[], bool]) -> None:
    """The loop stands still: nothing is awaited."""
    patience = time.monotonic() + 20
    while not until():
        assert time.monotonic() < patience
        time.sleep(0.01)


@asynccontextmanager
async def leased(leases: Leases, config: WorkerConfig = CONFIG) -> AsyncIterator[ThreadLease]:
    lease = make_lease("w1", leases, Liveness(leases, CLOCK, lease_s=config.lease_s), config, CLOCK)
    assert isinstance(lease, ThreadLease)
    await lease.open()
    running = asyncio.create_task(lease.run())
    try:
        yield lease
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await lease.aclose()


async def test_a_twins_lease_is_renewed_by_the_loop(tmp_path: Path) -> None:
    async with memory_lives(tmp_path) as lives:
        leases = lives.live.leases
        lease = make_lease("w1", leases, Liveness(leases, CLOCK, lease_s=1.0), CONFIG, CLOCK)
        assert isinstance(lease, LoopLease)
        await lease.open()
        assert lease.holds


@pytest.mark.services
async def test_a_loop_that_is_blocked_for_several_leases_does_not_lose_its_lease(tmp_path: Path) -> None:
    async with redis_lives(tmp_path, retention_s=0.2) as lives:
        assert isinstance(lives, RedisLives)
        key = f"{lives._prefix}:{{leases}}:lease:w1"
        async with leased(lives.live.leases) as lease:
            ends = time.monotonic() + 5 * CONFIG.lease_s
            block(lambda: not lives._admin.exists(key) or time.monotonic() > ends)
            assert lives._admin.exists(key)
            assert lease.holds
        assert not lives._admin.exists(key)


async def test_the_thread_ends_with_its_owner_and_the_lease_with_the_thread() -> None:
    leases = Noted()
    async with leased(leases) as lease:
        await until(lambda: len(leases.held) > 2)
        assert leases.threads == {"lease"}
        assert lease.holds
    assert leases.dropped == ["w1"]
    assert "lease" not in {thread.name for thread in threading.enumerate()}


async def test_a_lease_that_cannot_be_taken_is_told_and_leaves_no_thread() -> None:
    leases = Noted()
    leases.down = True
    with pytest.raises(DependencyDown):
        async with leased(leases):
            pass
    assert "lease" not in {thread.name for thread in threading.enumerate()}
    leases.down = False
    async with leased(leases) as lease:
        assert lease.holds


async def test_a_lease_that_could_not_be_renewed_is_known_to_hold_no_longer() -> None:
    leases = Noted()
    async with leased(leases) as lease:
        leases.down = True
        await until(lambda: not lease.holds)
        leases.down = False
        await until(lambda: lease.holds)


async def test_a_loop_that_hangs_for_good_loses_its_lease_and_gets_it_back_when_it_moves() -> None:
    leases = Noted()
    async with leased(leases, WorkerConfig(lease_s=0.2, renew_s=0.02, stall_timeout_s=0.3)) as lease:
        await until(lambda: len(leases.held) > 2)
        block(lambda: not lease.holds)
        await until(lambda: lease.holds)


async def test_a_worker_whose_lease_thread_died_of_a_bug_is_told() -> None:
    leases = Noted()
    lease = make_lease("w1", leases, Liveness(leases, CLOCK, lease_s=CONFIG.lease_s), CONFIG, CLOCK)
    await lease.open()
    leases.broken = True
    with pytest.raises(RuntimeError, match="lease"):
        await asyncio.wait_for(lease.run(), 60)
    await lease.aclose()
