"""RabbitMQ killed, short of a node, cut off from a worker, and without room on its disk."""

import socket
import time

import httpx

from tests.faults.checkers import HANGS_S, Violation
from tests.faults.fault import Fault, Scene
from tests.services.process import listening, wait_for

_CUT_OFF_S = 12.0
"""Longer than the broker takes to miss two heartbeats."""


def _held(scene: Scene) -> int:
    """Jobs that workers have taken and not acked."""
    taken = scene.place.messages(which="checked_out")
    return sum(count for name, count in taken.items() if name.startswith("lane."))


def _refused(scene: Scene, url: str) -> tuple[int, str, bool]:
    """How a new request is answered: status, code, and whether it is told when to come back."""
    headers = {"Authorization": f"Bearer {scene.stage.keys['default']}"}
    reply = httpx.post(f"{url}/v1/completions", json=scene.stage.asks[0].body, headers=headers, timeout=HANGS_S)
    code = "" if reply.status_code == 200 else reply.json()["error"]["code"]
    return reply.status_code, code, "retry-after-ms" in reply.headers


def _greeted(port: int) -> bool:
    """Whether a broker answers there."""
    with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
        connection.sendall(b"AMQP\x00\x00\x09\x01")
        try:
            return bool(connection.recv(1))
        except TimeoutError:
            return False


def killed(scene: Scene) -> None:
    """RabbitMQ is killed with unacked deliveries; what runs goes on, nobody steals it, and new requests wait."""
    victim, fleet = scene.place.rabbit, scene.fleet
    jobs: dict[str, int] = {}
    running: list[str] = []

    def streams_are_caught_early() -> bool:
        """Stops the engines, so that streams outlast the outage, however long it takes; or lets them go on."""
        for worker in fleet.workers:
            worker.pause_engine()
            jobs.update(scene.place.jobs(worker.incarnation))
        running.extend(job for job, last in jobs.items() if 0 < last < 25)
        if not running:
            jobs.clear()
            for worker in fleet.workers:
                worker.resume()
        return bool(running)

    scene.wait(streams_are_caught_early, "streams are at their beginning", 60.0)
    scene.wait(lambda: _held(scene) >= len(running), "deliveries are in workers' hands")
    epochs = {job: scene.place.job(job)[b"epoch"] for job in running}
    failovers = fleet.metric("axon_failovers_total"), fleet.metric("axon_fenced_writes_total")
    victim.kill()
    scene.prove(not listening(victim.port), "the broker is gone")
    for worker in fleet.workers:
        worker.resume()
    scene.strike(running)
    scene.wait(
        lambda: any(int(scene.place.job(job)[b"last"]) > jobs[job] for job in running), "streams go on without it"
    )
    for gateway in fleet.gateways:
        answer = _refused(scene, gateway.url)
        scene.prove(answer == (503, "queue_unavailable", True), f"new requests are refused for now: {answer}")
    victim.start()

    def nothing_was_stolen(_: object) -> list[Violation]:
        """Looked at when all has ended: by then every delivery has come back."""
        found = [
            Violation("repeated", f"{job} was stolen from its owner")
            for job, epoch in epochs.items()
            if scene.place.job(job).get(b"epoch", epoch) != epoch
        ]
        after = fleet.metric("axon_failovers_total"), fleet.metric("axon_fenced_writes_total")
        if after != failovers:
            found.append(Violation("repeated", f"failovers and fenced writes: {failovers} to {after}"))
        return found

    scene.checks.append(nothing_was_stolen)


def node_killed(scene: Scene) -> None:
    """One of three clustered nodes is killed: the one that everybody is connected to, with leaders on it."""
    stage = scene.stage
    victim, *others = stage.rabbits
    scene.strike()
    victim.kill()
    scene.prove(not listening(victim.port), "the node is gone")
    stage.place.rabbit = others[0]
    stage.rabbit_way.switch(others[0].port)
    scene.wait(lambda: victim.name not in stage.cluster.running(others[0]), "the others have noticed")
    scene.work.wait_for_ended(scene.work.num_clients // 2, asked_after=scene.work.now)
    victim.start()
    scene.wait(lambda: victim.name in stage.cluster.running(others[0]), "it has joined them again", 60.0)
    stage.rabbits = [*others, victim]


def cut_off(scene: Scene) -> None:
    """A worker and the broker do not hear each other, until the broker has given its deliveries to others."""
    worker, way = scene.fleet.workers[0], scene.stage.rabbit_way
    scene.work.wait_for_running(scene.work.num_clients // 2)
    jobs = list(scene.place.jobs(worker.incarnation))
    scene.prove(jobs, "the worker has jobs")
    scene.strike(jobs)
    way.swallow()
    until = time.monotonic() + _CUT_OFF_S
    scene.prove(not _greeted(way.port), "nothing gets through to the broker")
    wait_for(lambda: time.monotonic() > until, "the broker takes the worker for lost", 60.0)
    scene.prove(worker.alive and worker.incarnation in scene.place.leases(), "the worker lives all the while")
    way.heal()


def disk_full(scene: Scene) -> None:
    """The broker's disk is full by its own measure: it takes no message until there is room."""
    victim = scene.place.rabbit
    scene.strike()
    victim.ctl("set_disk_free_limit", "9999GB")
    scene.wait(lambda: "disk" in victim.evaluate("rabbit_alarm:get_alarms()."), "the broker raises an alarm")
    answer = _refused(scene, scene.fleet.gateways[0].url)
    scene.prove(answer[0] == 503 and answer[2], f"new requests are refused for now: {answer}")
    victim.ctl("set_disk_free_limit", "50MB")
    scene.wait(lambda: "disk" not in victim.evaluate("rabbit_alarm:get_alarms()."), "the alarm is over")


FAULTS = [
    Fault(name="RabbitMQ killed and restarted", happen=killed, goal_s=2.0, tested="always"),
    Fault(name="RabbitMQ's disk full", happen=disk_full, goal_s=2.0),
    Fault(name="one of three RabbitMQ nodes killed", happen=node_killed, stage="cluster", rounds=2, goal_s=2.0),
    Fault(name="worker cut off from RabbitMQ", happen=cut_off, stage="ways", goal_s=2.0),
]
