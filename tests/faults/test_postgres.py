"""PostgreSQL away, and promoted from its standby: nobody waits for it, and no ended turn is missing from it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from axon.domain.key import new_key_text
from tests.faults.checkers import check_all
from tests.faults.fleet import Place
from tests.faults.proxy import Forwarder
from tests.faults.workload import Workload, echo_asks, undisturbed
from tests.journeys.server import Server
from tests.services.postgres import PostgresServer
from tests.services.process import listening, wait_for
from tests.services.require import require

pytestmark = pytest.mark.services

_AWAY_S = 20.0


@pytest.fixture
def victim(victims: Path) -> Iterator[PostgresServer]:
    require("postgres", "initdb")
    server = PostgresServer(victims / "postgres")
    server.start()
    yield server
    server.kill()


def test_streams_and_known_keys_go_on_while_postgres_is_away_for_twenty_seconds(
    place: Callable[..., Place], workload: Callable[..., Workload], victim: PostgresServer
) -> None:
    url = victim.create_database()
    here = place(store_url=url, store_admin_url=url)
    servers = [here.start(), here.start()]
    with workload(servers, undisturbed(servers[0], echo_asks(150)), num_clients=9) as work:
        work.wait_for_running(6)
        victim.stop()
        assert not listening(victim.port)
        stopped_at, away_until = work.now, time.monotonic() + _AWAY_S
        assert answer_to_a_stranger(servers[0]) == (503, True)
        work.wait_for_ended(12, asked_after=stopped_at, timeout_s=_AWAY_S)
        wait_for(lambda: time.monotonic() > away_until, "it was away for long enough")
        assert not listening(victim.port)
        victim.start()
        history = work.finish()
    check_all(here, history, servers)
    assert answer_to_a_stranger(servers[0]) == (401, False)


def answer_to_a_stranger(server: Server) -> tuple[int, bool]:
    """The status for a key that nobody has made, and whether to come back."""
    _, text = new_key_text()
    reply = httpx.get(f"{server.url}/v1/models", headers={"Authorization": f"Bearer {text}"}, timeout=15.0)
    return reply.status_code, "retry-after-ms" in reply.headers


def test_no_acknowledged_turn_is_missing_after_the_synchronous_standby_was_promoted(
    place: Callable[..., Place], workload: Callable[..., Workload], victim: PostgresServer, victims: Path
) -> None:
    name = victim.create_database().rsplit("/", 1)[1]
    standby = victim.standby(victims / "standby")
    with Forwarder(victim.port) as way:
        url = victim.database_url(name).replace(f":{victim.port}/", f":{way.port}/")
        here = place(store_url=url, store_admin_url=standby.database_url(name))
        servers = [here.start(), here.start()]
        try:
            with workload(servers, undisturbed(servers[0], echo_asks(150))) as work:
                work.wait_for_ended(6, asked_after=0.0)
                work.wait_for_running(6)
                victim.kill()
                assert not listening(victim.port)
                assert standby.execute("SELECT pg_is_in_recovery()") == [(True,)]
                standby.promote()
                assert standby.execute("SELECT pg_is_in_recovery()") == [(False,)]
                way.switch(standby.port)
                work.wait_for_ended(6, asked_after=work.now)
                history = work.finish()
            check_all(here, history, servers)
        finally:
            standby.kill()
