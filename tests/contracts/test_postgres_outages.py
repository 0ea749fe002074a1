"""PostgreSQL servers that die, stall, refuse and are replaced: every call fails in time, and the store comes back."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from axon.adapters.store.postgres import PostgresStore
from axon.domain.turn import opened
from axon.errors import DependencyDown
from tests.contracts.builders import make_ended, make_job, make_key
from tests.contracts.postgres_store import DEADLINE_S, LATE_S, calls, opened_store
from tests.services.postgres import PostgresServer
from tests.services.process import wait_for
from tests.services.require import require

pytestmark = pytest.mark.services

AT_ONCE = 5
"""Calls to a store that does not answer: fewer than its connections, so that none waits for another."""
BACK_S = 60.0
"""What a server that goes on may take, on a busy machine, until it answers within the deadline again."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    """A server of the test's own, to be harmed."""
    require("postgres", "initdb")
    server = PostgresServer(tmp_path / "postgres")
    server.start()
    yield server
    server.kill()


async def all_fail_in_time(store: PostgresStore) -> set[str]:
    """The codes with which they fail, some at a time."""

    async def fails_in_time(call: Callable[[], Coroutine[Any, Any, object]]) -> str:
        start = time.monotonic()
        with pytest.raises(DependencyDown) as failure:
            await call()
        assert time.monotonic() - start < DEADLINE_S + LATE_S
        return failure.value.code

    every, codes = calls(store), set()
    for first in range(0, len(every), AT_ONCE):
        codes |= set(await asyncio.gather(*map(fails_in_time, every[first : first + AT_ONCE])))
    return codes


async def comes_back(store: PostgresStore) -> None:
    """Waits until the store answers within its deadline, and has what was written."""
    async with asyncio.timeout(BACK_S):
        while True:
            with suppress(DependencyDown):
                assert await store.turns.get("turn_1") == opened(make_job())
                return


class TestServersThatFail:
    async def test_after_a_kill_and_a_restart_the_first_call_succeeds(self, server: PostgresServer) -> None:
        async with opened_store(server.url, timeout_s=30.0) as store:
            await asyncio.gather(*(store.turns.apply([opened(make_job(f"turn_{n}"))]) for n in range(8)))
            server.kill()
            server.start()
            assert len(await store.turns.unfinished(limit=10)) == 8
            await store.turns.apply([make_ended(make_job("turn_0"))])

    async def test_a_stopped_server_is_down_in_every_call_and_comes_back(self, server: PostgresServer) -> None:
        async with opened_store(server.url, timeout_s=DEADLINE_S) as store:
            await store.turns.apply([opened(make_job())])
            server.stop()
            assert await all_fail_in_time(store) == {"storage_unavailable"}
            server.start()
            await comes_back(store)

    async def test_a_server_that_stalls_is_down_in_time_and_comes_back(self, server: PostgresServer) -> None:
        async with opened_store(server.url, timeout_s=DEADLINE_S) as store:
            await store.turns.apply([opened(make_job())])
            server.pause()
            try:
                assert await all_fail_in_time(store) == {"storage_unavailable"}
            finally:
                server.resume()
            await comes_back(store)

    async def test_a_caller_who_goes_away_from_a_stalled_server_is_let_go(self, server: PostgresServer) -> None:
        async with opened_store(server.url, timeout_s=30.0) as store:
            await store.ping()
            server.pause()
            try:
                start = time.monotonic()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await store.ping()
                assert time.monotonic() - start < 0.2 + LATE_S
            finally:
                server.resume()
            await store.ping()

    async def test_nobody_at_the_address_is_down_at_open(self, server: PostgresServer) -> None:
        server.stop()
        with pytest.raises(DependencyDown):
            await PostgresStore(server.url).open()

    async def test_a_promoted_standby_has_every_write_that_was_acknowledged(
        self, server: PostgresServer, tmp_path: Path
    ) -> None:
        acknowledged: list[str] = []

        async def write(store: PostgresStore, writer: int) -> None:
            for number in range(100_000):
                turn = opened(make_job(f"turn_{writer}_{number}"))
                await store.turns.apply([turn])
                acknowledged.append(turn.id)

        async with opened_store(server.url) as store:
            standby = await asyncio.to_thread(server.standby, tmp_path / "standby")
            try:
                writers = [asyncio.create_task(write(store, writer)) for writer in range(4)]
                await asyncio.to_thread(wait_for, lambda: len(acknowledged) >= 200, "200 turns are written")
                await asyncio.to_thread(server.kill)
                outcomes = await asyncio.gather(*writers, return_exceptions=True)
                assert all(isinstance(outcome, DependencyDown) for outcome in outcomes)
                await asyncio.to_thread(standby.promote)
                async with opened_store(standby.url) as promoted:
                    stored = {turn.id for turn in await promoted.turns.unfinished(limit=100_000)}
                    await promoted.turns.apply([make_ended(make_job(acknowledged[0]))])
                assert set(acknowledged) <= stored
            finally:
                standby.kill()

    async def test_a_read_only_server_says_so_serves_reads_and_recovers(self, server: PostgresServer) -> None:
        async with opened_store(server.url, timeout_s=30.0) as store:
            await store.turns.apply([opened(make_job())])
            server.configure(default_transaction_read_only="on")
            for write in (store.turns.apply([make_ended(make_job())]), store.keys.add(make_key())):
                with pytest.raises(DependencyDown) as failure:
                    await write
                assert failure.value.code == "store_read_only"
            assert await store.turns.get("turn_1") == opened(make_job())
            server.configure(default_transaction_read_only=None)
            await takes_writes_again(store)


async def takes_writes_again(store: PostgresStore) -> None:
    """A server reads its settings in its own time."""
    async with asyncio.timeout(60.0):
        while True:
            with suppress(DependencyDown):
                await store.turns.apply([make_ended(make_job())])
                return
            await asyncio.sleep(0.05)
