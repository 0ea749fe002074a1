"""What goes wrong, and is mended: each fault is a context that breaks a watched fleet and repairs it at its end.

A fault names the alerts that it must fire. They stop when it has been mended.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

import aiormq
import httpx
import msgspec
import psycopg

from axon.adapters.journal.rabbitmq import journal_name
from axon.domain.fairness.lane import lane_names
from axon.engine.echo import POISON
from tests.fleet.versions import sent
from tests.journeys.conftest import FEW_LANES
from tests.journeys.server import wait_until
from tests.monitoring.exercise import ABSENT, ask_versions, mixing
from tests.monitoring.repeated import repeated
from tests.monitoring.scene import Scene

Break = Callable[[Scene], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A way to break the fleet, and the alerts that tell of it."""

    alerts: tuple[str, ...]
    breaks: Break

    @property
    def name(self) -> str:
        return self.breaks.__name__


@contextmanager
def workers_are_stopped(scene: Scene) -> Iterator[None]:
    """More and more is asked for, and nobody is there to answer."""
    for worker in scene.echo_workers:
        worker.stop()
    with repeated(lambda: _in_the_background(scene), every_s=0.4):  # a tenant may have 64 of them: not too soon
        yield
    for worker in scene.echo_workers:
        worker.start()


@contextmanager
def workers_err(scene: Scene) -> Iterator[None]:
    """Nearly all turns fail."""
    _restart(scene, engine_echo_fails=0.9)
    scene.load.width = 6
    yield
    scene.load.width = 2
    _restart(scene, engine_echo_fails=0.0)


@contextmanager
def tokens_are_slow(scene: Scene) -> Iterator[None]:
    """Tokens come every 100 ms."""
    _restart(scene, engine_echo_step_s=0.1)
    scene.load.width = 12
    yield
    scene.load.width = 2
    _restart(scene, engine_echo_step_s=0.01)


@contextmanager
def workers_are_slow(scene: Scene) -> Iterator[None]:
    """The first step of an answer takes longer than 2 s."""
    _restart(scene, engine_echo_step_s=2.2)
    scene.load.width = 60
    yield
    scene.load.width = 2
    _restart(scene, engine_echo_step_s=0.01)


@contextmanager
def kv_is_full(scene: Scene) -> Iterator[None]:
    """One long prompt fills all blocks of an engine, and slots stay free while others wait."""
    _restart(scene, engine_kv_memory_bytes=32 * 16 * 4096, engine_echo_step_s=0.5, engine_max_sequences=2)
    asked = [_in_the_background(scene, text="x" * 470, max_output_tokens=18) for _ in range(24)]
    yield
    with scene.fleet.client(scene.fleet.gateways[0].url) as http:
        for id in asked:
            http.post(f"/v1/responses/{id}/cancel")
    _restart(scene, engine_kv_memory_bytes=0, engine_echo_step_s=0.01, engine_max_sequences=0)


@contextmanager
def poison_is_sent(scene: Scene) -> Iterator[None]:
    """A request kills every engine that runs it."""

    def send() -> None:
        with scene.fleet.client(scene.fleet.gateways[0].url) as http, suppress(httpx.HTTPError):
            http.post("/v1/completions", json={"model": "echo", "prompt": list(POISON)})

    with repeated(send, every_s=0.1):
        yield


@contextmanager
def a_worker_stands_still(scene: Scene) -> Iterator[None]:
    """Again and again it pauses until others have taken its jobs, and then writes to them."""
    worker, other = scene.echo_workers
    scene.load.width, scene.load.repeats = 12, 20

    def pause() -> None:
        before = other.metric("axon_failovers_total")
        worker.pause()
        try:
            wait_until(lambda: other.metric("axon_failovers_total") > before, "its jobs are taken over", 10)
        finally:
            worker.resume()

    with repeated(pause, every_s=6.0):
        yield
    scene.load.width, scene.load.repeats = 2, 1


@contextmanager
def control_is_stopped(scene: Scene) -> Iterator[None]:
    [control] = scene.fleet.controls
    control.stop()
    yield
    control.start()


@contextmanager
def the_store_is_locked(scene: Scene) -> Iterator[None]:
    """Somebody holds a lock on the table that ended turns go to."""
    url = str(scene.fleet.store).replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(url) as connection:
        connection.execute("LOCK TABLE turns IN SHARE MODE")  # it can be read
        yield


@contextmanager
def redis_is_away(scene: Scene) -> Iterator[None]:
    scene.live.kill()
    yield
    scene.live.start()


@contextmanager
def the_journal_has_garbage(scene: Scene) -> Iterator[None]:
    """Somebody writes what is no record."""
    place = scene.fleet.gateways[0].settings
    with repeated(lambda: _publish(scene, journal_name(str(place["namespace"])), b"no record"), every_s=1.0):
        yield


@contextmanager
def a_job_is_of_a_later_release(scene: Scene) -> Iterator[None]:
    """No worker of this release may run it."""
    place = scene.fleet.gateways[0].settings
    queue = f"{place['namespace']}.lane.{lane_names('echo', FEW_LANES)[0]}"
    _publish(scene, queue, msgspec.msgpack.encode({"v": 99, "id": "turn_later", "words": "of a later release"}))
    yield
    for worker in scene.echo_workers:
        worker.kill()  # they hold it
    asyncio.run(_purge(str(place["queue"]), queue))
    for worker in scene.echo_workers:
        worker.start()


@contextmanager
def prometheus_finds_nobody(scene: Scene) -> Iterator[None]:
    """Its service discovery is broken."""
    scene.prometheus.scrape([])
    yield
    scene.scrape_all()


@contextmanager
def a_rollout_cannot_go_on(scene: Scene) -> Iterator[None]:
    """Nobody starts a worker of the new version."""
    path = f"/v1/admin/deployments/{ABSENT}/rollout"
    sent(scene.registry.http.post(path, json={"version": "v3", "steps": [50, 100], "bake_s": 0}))
    yield
    sent(scene.registry.http.post(f"{path}/abort", json={}))


@contextmanager
def versions_are_mixed(scene: Scene) -> Iterator[None]:
    """A session goes on with another version than it has begun on."""
    with mixing(scene) as mixer, repeated(lambda: ask_versions(mixer), every_s=0.5):
        yield


def _publish(scene: Scene, queue: str, body: bytes) -> None:
    """A message from somebody who is no process of the fleet."""

    async def publish() -> None:
        connection = await aiormq.connect(str(scene.fleet.gateways[0].settings["queue"]))
        try:
            channel = await connection.channel()
            await channel.basic_publish(body, routing_key=queue)
        finally:
            await connection.close()

    asyncio.run(publish())


async def _purge(url: str, queue: str) -> None:
    connection = await aiormq.connect(url)
    try:
        await (await connection.channel()).queue_purge(queue)
    finally:
        await connection.close()


def _restart(scene: Scene, **settings: object) -> None:
    """As an operator changes a setting, but at once."""
    for worker in scene.echo_workers:
        worker.kill()
    for worker in scene.echo_workers:
        worker.start(wait=False, **settings)
    for worker in scene.echo_workers:
        worker.wait_ready()


def _in_the_background(scene: Scene, text: str = "Some day.", max_output_tokens: int = 20) -> str:
    """The id of a turn that nobody waits for."""
    with scene.fleet.client(scene.fleet.gateways[0].url) as http:
        body = {"model": "echo", "input": text, "background": True, "max_output_tokens": max_output_tokens}
        return str(sent(http.post("/v1/responses", json=body))["id"])


QUICK = (
    Fault(breaks=workers_are_stopped, alerts=("AxonNoReadyWorkers", "AxonBacklogGrowing")),
    Fault(breaks=the_store_is_locked, alerts=("AxonWalLag",)),
    Fault(breaks=poison_is_sent, alerts=("AxonPoisonJobs", "AxonEngineRestarts")),
)
SLOW = (
    Fault(breaks=workers_err, alerts=("AxonAvailabilityBurn", "AxonTurnFailureBurn")),
    Fault(breaks=kv_is_full, alerts=("AxonKVSaturated", "AxonUtilizationLow")),
    Fault(breaks=a_worker_stands_still, alerts=("AxonFencedWrites",)),
    Fault(breaks=control_is_stopped, alerts=("AxonNoLeader", "AxonProcessDown")),
    Fault(breaks=redis_is_away, alerts=("AxonDependencyDown",)),
    Fault(breaks=a_job_is_of_a_later_release, alerts=("AxonHeldJobs",)),
    Fault(breaks=the_journal_has_garbage, alerts=("AxonDeadLetters",)),
    Fault(breaks=prometheus_finds_nobody, alerts=("AxonMetricsAbsent",)),
    Fault(breaks=a_rollout_cannot_go_on, alerts=("AxonRolloutStuck",)),
    Fault(breaks=versions_are_mixed, alerts=("AxonPinConflicts",)),
)
TIMED = (
    Fault(breaks=workers_are_slow, alerts=("AxonFirstTokenBurn",)),
    Fault(breaks=tokens_are_slow, alerts=("AxonTokenGapBurn",)),
)
"""Alerts on times, which also fire where the machine itself is too slow."""
