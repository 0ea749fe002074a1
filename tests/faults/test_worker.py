"""Deliveries that come twice, workers that stop and go on, servers that die: one answer, one row, one bill."""

import asyncio
from collections.abc import Callable

import pytest

from axon.adapters.queue.rabbitmq import RabbitQueue
from axon.domain import wire
from axon.domain.job import Job
from tests.faults.checkers import check_all, messages
from tests.faults.fleet import Place, state_of
from tests.faults.workload import Workload, echo_asks, undisturbed
from tests.services.process import wait_for

pytestmark = pytest.mark.services


def test_a_job_delivered_twice_is_answered_and_billed_once(
    place: Callable[..., Place], workload: Callable[..., Workload]
) -> None:
    here = place()
    servers = [here.start(), here.start()]
    asks = undisturbed(servers[0], echo_asks(200))
    with workload(servers, asks, num_clients=4, turns_each=1) as work:
        work.wait_for_running(4)
        for server in servers:
            server.pause_engine()  # so that they run until the copies have been seen
        running = [told.stream_id for told in work.history.running]
        epochs = {stream_id: here.job(stream_id)[b"epoch"] for stream_id in running}
        bodies = [here.job(stream_id)[b"body"] for stream_id in running]
        asyncio.run(publish(here, bodies))
        wait_for(lambda: sum(messages(here).values()) == 2 * len(running), "the copies are held beside the jobs", 10.0)
        assert not any(b"ended" in here.job(stream_id) for stream_id in running), "the jobs still run"
        for server in servers:
            server.resume()
        history = work.finish()
    stored = check_all(here, history, servers)
    asyncio.run(publish(here, bodies))
    assert check_all(here, history, servers) == stored
    assert {stream_id: here.job(stream_id)[b"epoch"] for stream_id in running} == epochs
    billed = sum(server.metric(r'axon_tokens_total\{kind="output".*\}') for server in servers)
    assert billed == sum(turn.usage.output_tokens for turn in stored.turns.values())


async def publish(place: Place, bodies: list[bytes]) -> None:
    """Each job once more into its lane, confirmed."""
    queue = RabbitQueue(place.rabbit.url, place.namespace)
    await queue.open()
    try:
        for body in bodies:
            await queue.publish(wire.decode(Job, body).lane, body)
    finally:
        await queue.aclose()


def test_a_paused_worker_loses_its_jobs_to_another_and_its_late_words_are_fenced(
    place: Callable[..., Place], workload: Callable[..., Workload]
) -> None:
    here = place()
    paused, other = here.start(), here.start()
    asks = undisturbed(paused, echo_asks(400))
    with workload([paused, other], asks, turns_each=1, stall_s=2.0, answer_s=4.0) as work:
        work.wait_for_running(10)
        assert paused.metric("axon_requests_running") > 0
        paused.pause()
        assert state_of(paused.pid) == "T"
        wait_for(lambda: len(here.leases()) == 1, "the paused worker's lease lapses", 10.0)
        [heir] = here.leases()
        orphans = [told.stream_id for told in work.history.running if owner(here, told.stream_id) != heir]
        assert orphans, "the paused worker had streams"
        wait_for(lambda: all(owner(here, each) == heir for each in orphans), "the other takes them over", 10.0)
        assert state_of(paused.pid) == "T"
        paused.resume()
        wait_for(lambda: paused.metric("axon_fenced_writes_total") >= 1, "the late words are fenced")
        history = work.finish()
    check_all(here, history, [paused, other], hangs=True)
    assert other.metric("axon_fenced_writes_total") == 0


def owner(place: Place, stream_id: str) -> str:
    return place.job(stream_id)[b"owner"].decode()


def test_a_killed_server_takes_no_stream_with_it(
    place: Callable[..., Place], workload: Callable[..., Workload]
) -> None:
    here = place()
    doomed, other = here.start(), here.start()
    asks = undisturbed(doomed, echo_asks(300))
    with workload([doomed, other], asks, num_clients=20, turns_each=1) as work:
        work.wait_for_running(16)
        assert doomed.metric("axon_requests_running") > 0
        doomed.kill()
        assert state_of(doomed.pid) == "X"
        wait_for(lambda: len(here.leases()) == 1, "the killed worker's lease lapses", 10.0)
        history = work.finish()
    check_all(here, history, [other])
