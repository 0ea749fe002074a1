"""Redis killed, flushed, failed over with a lost tail, and silent: every stream goes on to its undisturbed end."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from tests.faults.checkers import check_all
from tests.faults.fleet import Place
from tests.faults.proxy import Forwarder
from tests.faults.workload import Workload, echo_asks, undisturbed
from tests.services.process import listening, wait_for
from tests.services.redis import RedisServer
from tests.services.require import require

pytestmark = pytest.mark.services

_NUM_TOKENS = 150


@pytest.fixture
def victim(victims: Path) -> Iterator[RedisServer]:
    require("redis-server")
    server = RedisServer(victims / "redis")
    server.start()
    yield server
    server.kill()


def run_id(server: RedisServer) -> str:
    with server.admin() as admin:
        return str(admin.info("server")["run_id"])


def last_seqs(server: RedisServer, place: Place) -> dict[str, int]:
    """The last seq of every job that a Redis knows of."""
    with server.admin() as admin:
        keys = [key.decode() for key in admin.scan_iter(f"{place.namespace}:*:job")]
        return {key: int(admin.hget(key, "last") or 0) for key in keys}


def test_streams_go_on_after_redis_was_killed_and_restarted(
    place: Callable[..., Place], workload: Callable[..., Workload], victim: RedisServer
) -> None:
    here = place(live_url=victim.url, live_port=victim.port)
    servers = [here.start(), here.start()]
    with workload(servers, undisturbed(servers[0], echo_asks(_NUM_TOKENS))) as work:
        work.wait_for_running(8)
        first_life = run_id(victim)
        victim.kill()
        assert not listening(victim.port)
        victim.start()
        assert run_id(victim) != first_life
        work.wait_for_ended(8, asked_after=work.now)
        history = work.finish()
    check_all(here, history, servers)


def test_streams_go_on_after_redis_was_flushed(
    place: Callable[..., Place], workload: Callable[..., Workload], victim: RedisServer
) -> None:
    here = place(live_url=victim.url, live_port=victim.port)
    servers = [here.start(), here.start()]
    with workload(servers, undisturbed(servers[0], echo_asks(_NUM_TOKENS))) as work:
        for _ in range(3):
            work.wait_for_running(8)
            running = [told.stream_id for told in work.history.running]
            with victim.admin() as admin:
                pipe = admin.pipeline(transaction=True)  # nobody writes between the loss and the look
                pipe.flushall()
                pipe.dbsize()
                assert pipe.execute()[1] == 0
            wait_for(
                lambda running=running: any(here.job(each) for each in running),  # type: ignore[misc]
                "a worker tells again what it remembers",
            )
            work.wait_for_ended(6, asked_after=work.now)
        history = work.finish()
    check_all(here, history, servers)


def test_streams_go_on_after_a_failover_to_a_replica_without_the_tail(
    place: Callable[..., Place], workload: Callable[..., Workload], victim: RedisServer, victims: Path
) -> None:
    replica = victim.replica(victims / "replica")
    with Forwarder(victim.port) as way:
        here = place(live_url=f"redis://127.0.0.1:{way.port}", live_port=victim.port)
        servers = [here.start(), here.start()]
        try:
            with workload(servers, undisturbed(servers[0], echo_asks(_NUM_TOKENS))) as work:
                work.wait_for_running(8)
                victim.replicate()
                replica.cut_off()
                known = last_seqs(replica, here)
                wait_for(lambda: _num_ahead(last_seqs(victim, here), known) >= 4, "the primary is ahead of it")
                told = last_seqs(victim, here)
                victim.kill()
                replica.promote()
                assert not listening(victim.port)
                assert _num_ahead(told, last_seqs(replica, here)) >= 4, "the tail is lost"
                way.switch(replica.port)
                here.live_port = replica.port
                work.wait_for_ended(8, asked_after=work.now)
                history = work.finish()
            check_all(here, history, servers)
        finally:
            replica.kill()


def _num_ahead(primary: dict[str, int], replica: dict[str, int]) -> int:
    """How many streams are longer on one than on the other, which knows of them."""
    return sum(last > replica[key] > 0 for key, last in primary.items() if key in replica)


def test_streams_go_on_after_redis_was_silent_for_five_seconds(
    place: Callable[..., Place], workload: Callable[..., Workload], victim: RedisServer
) -> None:
    with Forwarder(victim.port) as way:
        here = place(live_url=f"redis://127.0.0.1:{way.port}", live_port=victim.port)
        servers = [here.start(), here.start()]
        with workload(servers, undisturbed(servers[0], echo_asks(_NUM_TOKENS))) as work:
            work.wait_for_running(8)
            way.swallow()
            silent_until = time.monotonic() + 5.0
            with (
                redis.Redis(port=way.port, protocol=2, socket_timeout=0.5) as cut_off,
                pytest.raises(redis.TimeoutError),
            ):
                cut_off.ping()
            wait_for(lambda: not here.leases(), "the workers cannot renew their leases", 10.0)
            wait_for(lambda: time.monotonic() > silent_until, "five seconds have passed")
            way.heal()
            work.wait_for_ended(8, asked_after=work.now)
            history = work.finish()
        check_all(here, history, servers)
