"""RabbitMQ killed with everything in its workers' hands: nobody steals what runs, and nothing is lost."""

from collections.abc import Callable

import pytest

from tests.faults.checkers import HANGS_S, check_all, messages
from tests.faults.fleet import Place
from tests.faults.history import Told
from tests.faults.workload import Workload, echo_asks, undisturbed
from tests.services import rabbitmq
from tests.services.process import listening, wait_for

pytestmark = pytest.mark.services

_LONG = 800
"""Tokens of a stream that is still running when the broker is killed."""


def test_a_broker_killed_with_unacked_deliveries_has_nothing_stolen_and_nothing_lost(
    place: Callable[..., Place], workload: Callable[..., Workload]
) -> None:
    victim = rabbitmq.started_victim()
    here = place(rabbit=victim)
    quick = here.start(engine_echo_step_s=0.0)
    short, long = undisturbed(quick, echo_asks(100)), undisturbed(quick, echo_asks(_LONG))
    quick.end()
    servers = [here.start(), here.start()]
    victim.sync()
    with workload(servers, short + long) as work:

        def long_ones() -> list[Told]:
            return [told for told in work.history.running if told.ask.endswith(f"-{_LONG}")]

        def last(stream_id: str) -> int:
            return int(here.job(stream_id)[b"last"])

        def stand_still() -> None:
            for server in servers:
                server.pause_engine()

        def go_on() -> None:
            for server in servers:
                server.resume()

        wait_for(lambda: len(long_ones()) >= 4, "long streams run")
        stand_still()  # so that they outlast the outage, however long it takes
        running = [told.stream_id for told in long_ones() if told.seq < _LONG // 2]
        epochs = {stream_id: here.job(stream_id)[b"epoch"] for stream_id in running}
        assert held(here) >= len(running) > 0
        victim.kill()
        assert not listening(victim.port)
        seqs = {stream_id: last(stream_id) for stream_id in running}
        go_on()
        wait_for(lambda: all(last(each) > seqs[each] for each in running), "streams go on without the broker")
        stand_still()
        for server in servers:
            with server.client() as http:
                refused = http.post("/v1/completions", json=short[0].body, timeout=HANGS_S)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "queue_unavailable")
            assert refused.headers["retry-after-ms"]
        victim.start()
        wait_for(lambda: held(here) >= len(running), "every delivery is in somebody's hands again")
        assert not any(b"ended" in here.job(stream_id) for stream_id in running), "they still run"
        go_on()
        work.wait_for_ended(6, asked_after=work.now)
        history = work.finish()
    check_all(here, history, servers)
    assert {stream_id: here.job(stream_id)[b"epoch"] for stream_id in running} == epochs
    for server in servers:
        assert server.metric("axon_failovers_total") == 0
        assert server.metric("axon_fenced_writes_total") == 0


def held(place: Place) -> int:
    """Jobs that workers have taken and not acked."""
    taken = messages(place, which="checked_out")
    return sum(count for name, count in taken.items() if name.startswith("lane."))
