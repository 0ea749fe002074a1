"""What only a real Redis can show of the live ports: restarts, failovers, silence, clusters."""

import asyncio
import inspect
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis.exceptions

from axon.adapters.live.redis.live import RedisLive
from axon.adapters.live.redis.scripts import load
from axon.domain.log.chunk import Chunk
from axon.domain.wire import decode
from axon.errors import AxonError, DependencyDown, Misconfigured
from axon.ports.live import Appended, AppendStatus, stream_channel
from tests.contracts.builders import make_chunk
from tests.contracts.redis_calls import JOB, append, claimed, ids, opened, raising, until
from tests.services.redis import RedisServer, shared_server
from tests.services.require import require

pytestmark = pytest.mark.services

DEADLINE_S = 1.0


@pytest.fixture(autouse=True)
def redis_is_installed() -> None:
    require("redis-server")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not pytest's own, which closes itself to the servers' user whenever another run of tests begins."""
    with tempfile.TemporaryDirectory(prefix="axon-redis-") as name:
        yield Path(name)


@pytest.fixture
def server(folder: Path) -> Iterator[RedisServer]:
    """One of the test's own, to be killed."""
    server = RedisServer(folder / "redis")
    server.start()
    yield server
    server.kill()


@pytest.fixture
async def live(server: RedisServer, no_task_is_left: None) -> AsyncIterator[RedisLive]:
    async with opened(server, deadline_s=DEADLINE_S) as live:
        yield live
    if server.alive:
        with server.admin() as admin:
            assert [key for key in admin.scan_iter() if admin.pttl(key) == -1] == []


class TestAppending:
    async def test_a_step_of_many_jobs_takes_few_runs_of_the_script(self, server: RedisServer, live: RedisLive) -> None:
        epochs = {f"turn_{number}": await claimed(live.log, f"turn_{number}") for number in range(40)}
        batch = [(job_id, make_chunk(1, 2, epoch=epoch)) for job_id, epoch in epochs.items()]
        batch[3] = ("turn_3", make_chunk(1, epoch=1))  # of an attempt that was fenced off
        batch[35] = ("unknown", make_chunk(1))
        with server.admin() as admin:
            admin.config_resetstat()
            answers = await live.log.append(batch)
            assert admin.info("commandstats")["cmdstat_evalsha"]["calls"] <= 2
        assert answers[3].status is AppendStatus.FENCED
        assert answers[35].status is AppendStatus.MISSING
        ok = [answer for number, answer in enumerate(answers) if number not in (3, 35)]
        assert ok == [Appended(AppendStatus.OK, 2)] * 38


class TestRestarting:
    async def test_a_killed_server_comes_back_with_the_log_and_without_the_scripts(
        self, server: RedisServer, live: RedisLive
    ) -> None:
        epochs = {f"turn_{number}": await claimed(live.log, f"turn_{number}") for number in range(8)}
        await live.log.append([(job_id, make_chunk(1, 2, epoch=epoch)) for job_id, epoch in epochs.items()])
        run_id = await live.leases.run_id()
        server.write()
        server.kill()
        with pytest.raises(DependencyDown):
            await live.log.read(JOB, after=0)
        server.start()
        with server.admin() as admin:
            assert admin.script_exists(*(load(name).sha for name in ("append", "read"))) == [False, False]
        answers = await live.log.append([(job_id, make_chunk(3, 1, epoch=epoch)) for job_id, epoch in epochs.items()])
        assert set(answers) == {Appended(AppendStatus.OK, 3)}
        assert await ids(live.log) == [1, 2, 3]
        assert await live.leases.run_id() != run_id

    async def test_a_listener_is_woken_after_the_restart_and_hears_again(
        self, server: RedisServer, live: RedisLive
    ) -> None:
        async with live.wakeups.listen("c") as listener, live.wakeups.listen("d") as other:
            server.kill()
            server.start()
            assert [await listener.next(30.0), await other.next(30.0)] == [b"", b""]
            await live.wakeups.notify("c", b"up")
            assert await listener.next(30.0) == b"up"
            assert await other.next(0.01) is None

    async def test_listening_to_a_server_that_is_away_fails_in_time_and_leaves_nothing(
        self, server: RedisServer, live: RedisLive
    ) -> None:
        async with live.wakeups.listen("c"):
            pass
        server.kill()
        with pytest.raises(DependencyDown):
            async with live.wakeups.listen("d"):
                pass
        await until(lambda: live.wakeups.num_channels == 0)  # type: ignore[attr-defined]

    @pytest.mark.parametrize("restart", [True, False], ids=["restarted", "flushed"])
    async def test_what_the_server_forgot_is_missing_and_the_run_id_says_so(
        self, server: RedisServer, live: RedisLive, restart: bool
    ) -> None:
        epoch = await claimed(live.log)
        await live.leases.hold("w1", 60.0)
        run_id = await live.leases.run_id()
        server.flush()
        if restart:
            server.kill()
            server.start()
        answer = await until(lambda: append(live.log, make_chunk(1, epoch=epoch)))
        assert answer.status is AppendStatus.MISSING
        assert await live.leases.alive(["w1"]) == frozenset()
        assert await live.leases.run_id() != run_id


class TestFailingOver:
    async def test_a_replica_without_the_tail_says_where_to_go_on(self, server: RedisServer, folder: Path) -> None:
        replica = server.replica(folder / "replica")
        try:
            async with opened(server) as before:
                epoch = await claimed(before.log)
                await append(before.log, make_chunk(1, 3, epoch=epoch))
                run_id = await before.leases.run_id()
                server.replicate()
                replica.cut_off()
                assert await append(before.log, make_chunk(4, 2, epoch=epoch)) == Appended(AppendStatus.OK, 5)
            server.kill()
            replica.promote()
            async with opened(replica) as after:
                assert await ids(after.log) == [1, 2, 3], "the tail was not lost"
                assert await append(after.log, make_chunk(6, epoch=epoch)) == Appended(AppendStatus.GAP, 3)
                assert await append(after.log, make_chunk(4, 3, epoch=epoch)) == Appended(AppendStatus.OK, 6)
                assert await after.leases.run_id() != run_id
                view = await after.log.read(JOB, after=0)
                assert view is not None
                assert (view.owner, view.epoch) == ("w1", epoch)
        finally:
            replica.kill()

    async def test_a_primary_that_became_a_replica_refuses_and_is_asked_anew_each_time(
        self, server: RedisServer, live: RedisLive
    ) -> None:
        epoch = await claimed(live.log)
        with server.admin() as admin:
            admin.replicaof("127.0.0.1", 1)
            with pytest.raises(DependencyDown):
                await append(live.log, make_chunk(1, epoch=epoch))
            addresses = {client["addr"] for client in admin.client_list()}
            admin.replicaof("NO", "ONE")
            assert (await append(live.log, make_chunk(1, epoch=epoch))).status is AppendStatus.OK
            assert {client["addr"] for client in admin.client_list()} - addresses, "no new connection was made"


class TestSilence:
    async def test_a_server_that_says_nothing_is_down_within_the_deadline_and_heals(
        self, server: RedisServer, live: RedisLive
    ) -> None:
        epoch = await claimed(live.log)
        async with live.wakeups.listen(stream_channel(JOB)) as listener:
            server.pause()
            calls: list[Callable[[], Any]] = [
                lambda: live.log.read(JOB, after=0),
                lambda: live.log.append([(JOB, make_chunk(1, epoch=epoch))]),
                lambda: live.leases.alive(["w1"]),
                lambda: live.crowds.count("c"),
                lambda: live.cache.get("k"),
                lambda: live.wakeups.notify("c"),
            ]
            try:
                for call in calls:
                    began = time.monotonic()
                    with pytest.raises(DependencyDown):
                        await call()
                    assert time.monotonic() - began < 20 * DEADLINE_S  # bounded; a busy machine adds its own
            finally:
                server.resume()
            await until(lambda: live.log.read(JOB, after=0))
            assert await listener.next(30.0) is not None
            # The silent server has taken what was sent: that is why an append is a compare-and-set.
            assert (await append(live.log, make_chunk(1, epoch=epoch))).last in (0, 1)
            assert await ids(live.log) == [1]

    async def test_a_crowd_of_callers_waits_no_longer_than_one(self, server: RedisServer, live: RedisLive) -> None:
        server.pause()
        try:
            began = time.monotonic()
            failures = await asyncio.gather(*(live.cache.get("k") for _ in range(300)), return_exceptions=True)
            assert time.monotonic() - began < 30 * DEADLINE_S  # far from one after the other
        finally:
            server.resume()
        assert {type(failure) for failure in failures} == {DependencyDown}
        assert await until(lambda: live.cache.put("k", b"v", ttl_s=1.0))

    async def test_a_caller_that_goes_away_leaves_no_reply_for_the_next_one(self, live: RedisLive) -> None:
        for number in range(50):
            await live.cache.put(f"k{number}", str(number).encode(), ttl_s=10.0)
        for number in range(50):
            reading = asyncio.ensure_future(live.cache.get("k0"))
            for _ in range(number % 7):
                await asyncio.sleep(0)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            assert await live.cache.get(f"k{number}") == str(number).encode()


class TestRefusing:
    async def test_a_full_server_says_so_reads_on_and_takes_writes_when_there_is_room(
        self, server: RedisServer, live: RedisLive
    ) -> None:
        epoch = await claimed(live.log)
        await append(live.log, make_chunk(1, epoch=epoch))
        with server.admin() as admin:
            admin.config_set("maxmemory", "1")
            for call in (append(live.log, make_chunk(2, epoch=epoch)), live.cache.put("k", b"v", ttl_s=1.0)):
                with pytest.raises(DependencyDown) as refusal:
                    await call
                assert refusal.value.code == "live_full"
            assert await ids(live.log) == [1]
            admin.config_set("maxmemory", "0")
        assert await append(live.log, make_chunk(2, epoch=epoch)) == Appended(AppendStatus.OK, 2)

    async def test_nobody_at_the_address_fails_the_opening_and_leaves_nothing(self, folder: Path) -> None:
        for url in (RedisServer(folder / "a").url, RedisServer(folder / "b", cluster=True).url):
            live = RedisLive(url, retention_s=1.0, deadline_s=DEADLINE_S)
            with pytest.raises(DependencyDown):
                await live.open()
            with pytest.raises(DependencyDown):
                await live.cache.get("k")

    async def test_a_url_of_another_kind_is_a_wrong_setting(self) -> None:
        with pytest.raises(Misconfigured):
            await RedisLive("amqp://127.0.0.1", retention_s=1.0).open()

    async def test_no_error_of_the_driver_gets_out(self, live: RedisLive) -> None:
        kinds = [kind for _, kind in inspect.getmembers(redis.exceptions, inspect.isclass)]
        errors = [kind("1 127.0.0.1:1") for kind in kinds if issubclass(kind, Exception)]
        assert len(errors) > 30
        for error in [*errors, OSError("broken pipe"), TimeoutError(), ConnectionResetError()]:
            live._client._server.execute_command = raising(error)  # type: ignore[union-attr, method-assign]
            for call in (live.cache.get("k"), live.log.read(JOB, after=0), live.wakeups.notify("c")):
                with pytest.raises(AxonError) as failure:
                    await call
                assert type(failure.value) is DependencyDown
                full = isinstance(error, redis.exceptions.OutOfMemoryError)
                assert failure.value.code == ("live_full" if full else DependencyDown.code)


class TestClusters:
    @pytest.fixture
    def pair(self, folder: Path) -> Iterator[tuple[RedisServer, RedisServer]]:
        """Two nodes, half the slots each."""
        halves = ((0, 8191), (8192, 16383))
        pair = [RedisServer(folder / f"node{half[0]}", cluster=True, slots=half) for half in halves]
        for server in pair:
            server.start()
        pair[0].meet(pair[1])
        yield pair[0], pair[1]
        for server in pair:
            server.kill()

    async def test_a_batch_goes_to_every_node_it_concerns_and_a_listener_hears_from_all(
        self, pair: tuple[RedisServer, RedisServer]
    ) -> None:
        async with opened(pair[0]) as live:
            epochs = {f"turn_{number}": await claimed(live.log, f"turn_{number}") for number in range(16)}
            for server in pair:
                with server.admin() as admin:
                    assert admin.dbsize() > 0, "a node was not used"
            listen = live.wakeups.listen
            async with listen(stream_channel("turn_0")) as one, listen(stream_channel("turn_1")) as two:
                batch = [(job_id, make_chunk(1, epoch=epoch)) for job_id, epoch in epochs.items()]
                assert {answer.status for answer in await live.log.append(batch)} == {AppendStatus.OK}
                for listener in (one, two):
                    assert decode(Chunk, await listener.next(30.0) or b"").first == 1

    async def test_a_batch_fails_as_a_whole_when_a_node_is_away_and_goes_on_when_it_is_back(
        self, pair: tuple[RedisServer, RedisServer]
    ) -> None:
        async with opened(pair[0]) as live:
            epochs = {f"turn_{number}": await claimed(live.log, f"turn_{number}") for number in range(16)}
            batch = [(job_id, make_chunk(1, epoch=epoch)) for job_id, epoch in epochs.items()]
            pair[1].write()
            pair[1].kill()
            with pytest.raises(DependencyDown):
                await live.log.append(batch)
            pair[1].start()
            pair[0].wait_for_cluster()
            pair[1].wait_for_cluster()
            answers = await until(lambda: live.log.append(batch))
            assert {answer.last for answer in answers} == {1}

    async def test_closing_right_after_a_listener_left_does_not_wait_for_a_deadline(self) -> None:
        async with asyncio.timeout(60.0):
            for _ in range(10):
                async with opened(shared_server(cluster=True), deadline_s=60.0) as live, live.wakeups.listen("c"):
                    pass


class TestListening:
    async def test_channels_leave_with_their_listeners(self, server: RedisServer) -> None:
        async with opened(server, deadline_s=20.0) as live:  # two hundred at once may take their time
            async with asyncio.TaskGroup() as tasks:
                for number in range(200):
                    tasks.create_task(self.hear_once(live, f"c{number % 20}"))
            await until(lambda: live.wakeups.num_channels == 0)  # type: ignore[attr-defined]
            with server.admin() as admin:
                await until(lambda: admin.pubsub_channels() == [])

    async def hear_once(self, live: RedisLive, channel: str) -> None:
        """Joins and leaves while others do; what is sent after entering is heard every time."""
        async with live.wakeups.listen(channel) as listener:
            await live.wakeups.notify(channel, b"x")
            assert await listener.next(20.0) == b"x"

    async def test_the_payload_of_an_append_is_the_chunk(self, live: RedisLive) -> None:
        epoch = await claimed(live.log)
        async with live.wakeups.listen(stream_channel(JOB)) as listener:
            chunk = make_chunk(1, 3, epoch=epoch)
            await append(live.log, chunk)
            assert decode(Chunk, await listener.next(30.0) or b"") == chunk
