"""Jobs that come twice, and a job that kills whoever runs it: one answer, one row, one bill, and nobody else hurt."""

import asyncio
import math
from collections.abc import Sequence

import httpx

from axon.adapters.queue.rabbitmq import RabbitQueue
from axon.domain import wire
from axon.domain.job import Job
from axon.domain.turn import Turn
from tests.faults.checkers import Violation
from tests.faults.fault import Fault, Scene
from tests.faults.model import NAME, POISON_ID

_POISON_S = 120.0
_NUM_INNOCENT = 31
_MOST_CRASHES = 3 + math.ceil(math.log2(1 + _NUM_INNOCENT))


def delivered_twice(scene: Scene) -> None:
    """Jobs are delivered a second time while they run, and a third time after they have ended."""
    place, fleet = scene.place, scene.fleet
    for worker in fleet.workers:
        worker.pause_engine()  # so that they run until the copies have been seen
    running = [job for worker in fleet.workers for job in place.jobs(worker.incarnation)]
    bodies = {job: place.job(job)[b"body"] for job in running}
    epochs = {job: place.job(job)[b"epoch"] for job in running}
    handed_over = fleet.num_handed_over
    scene.prove(running, "jobs run")
    waiting = _num_waiting(scene)
    asyncio.run(_publish(scene, list(bodies.values())))
    scene.wait(lambda: _num_waiting(scene) >= waiting + len(running), "the copies are held beside the jobs")
    scene.prove(not any(b"ended" in place.job(job) for job in running), "the jobs still run")
    scene.strike(running)
    for worker in fleet.workers:
        worker.resume()
    scene.wait(lambda: all(b"ended" in place.job(job) for job in running), "the jobs have ended", 60.0)
    asyncio.run(_publish(scene, list(bodies.values())))
    moved = [job for job in running if place.job(job)[b"epoch"] != epochs[job]]
    # A worker that finds itself crowded hands jobs over, which is no theft: on busy cores that happens here too.
    stolen = moved[int(fleet.num_handed_over - handed_over) :]

    def check(turns: Sequence[Turn]) -> list[Violation]:
        billed = fleet.num_billed - scene.billed_before
        stored = sum(turn.usage.output_tokens for turn in turns) - scene.stored_before
        found = [Violation("repeated", f"{job} was run by two workers") for job in stolen]
        return found + ([Violation("billed", f"billed {billed:g}, stored {stored}")] if billed != stored else [])

    scene.checks.append(check)


def _num_waiting(scene: Scene) -> int:
    """Jobs on the queue or in somebody's hands."""
    return sum(count for name, count in scene.place.messages().items() if name.startswith("lane."))


async def _publish(scene: Scene, bodies: list[bytes]) -> None:
    """Each job once more into its lane, confirmed."""
    queue = RabbitQueue(scene.place.rabbit.url, scene.place.namespace)
    await queue.open()
    try:
        for body in bodies:
            await queue.publish(wire.decode(Job, body).lane, body)
    finally:
        await queue.aclose()


def poison(scene: Scene) -> None:
    """A request that kills its engine is asked among 31 others, all of one worker."""
    worker, *others = scene.fleet.workers
    for other in others:
        other.stop()
    scene.work.wait_for_running(scene.work.num_clients // 2)
    scene.wait(lambda: len(scene.place.jobs(worker.incarnation)) >= scene.work.num_clients - 1, "one has all the jobs")
    deaths = worker.metric("axon_failovers_total")
    scene.strike()
    headers = {"Authorization": f"Bearer {scene.stage.keys['default']}"}
    body = {"model": NAME, "prompt": [POISON_ID] * 3, "max_tokens": 40, "temperature": 0}
    asked_at = scene.work.now
    reply = httpx.post(f"{scene.fleet.urls[0]}/v1/completions", json=body, headers=headers, timeout=_POISON_S)
    ended_s = scene.work.now - asked_at
    crashes = worker.metric("axon_failovers_total") - deaths
    scene.fleet.start(*others)
    scene.prove(crashes >= 1, f"{crashes:g} engines died of it, and it was ended after {ended_s:.1f} s")
    condemned = [turn.id for turn in scene.place.turns() if POISON_ID in turn.job.prompt_ids]
    scene.stage.condemned |= dict.fromkeys(condemned, "worker_crash")

    def check(_: Sequence[Turn]) -> list[Violation]:
        found = []
        if (reply.status_code, reply.json()["error"]["code"]) != (500, "worker_crash"):
            found.append(Violation("lost", f"the poison was answered with {reply.status_code} {reply.text}"))
        if crashes > _MOST_CRASHES:
            found.append(Violation("repeated", f"it crashed {crashes:g} engines"))
        return found

    scene.checks.append(check)


FAULTS = [
    Fault(name="jobs delivered twice", happen=delivered_twice, tested="one of ten"),
    Fault(name="poison among 31", happen=poison, num_clients=_NUM_INNOCENT, goal_s=10.0),
]
