"""Workers, engines and gateways that are killed in the middle of answers of a form: schemas, tool calls, pairs."""

import os
import signal

from tests.faults import alone_faults, worker_faults
from tests.faults.fault import Fault, Scene
from tests.faults.fleet import Process, state_of
from tests.faults.history import Ask

_AMID = 5
"""Tokens after which an answer is in its middle."""


def _traits(ask: Ask) -> set[str]:
    """What is of interest about a request."""
    found = {"tool calls" if "tools" in ask.body else "schemas"}
    found |= {"pairs"} if ask.num_choices > 1 else set()
    return found | ({"seeds"} if "seed" in ask.body else {"greedy ones"})


def _caught(scene: Scene) -> tuple[Process, list[str]]:
    """A worker whose engine was stopped in the middle of schemas, tool calls and pairs at once; and its jobs."""
    found: list[tuple[Process, list[str]]] = []

    def look() -> bool:
        for worker in scene.rng.sample(scene.fleet.workers, len(scene.fleet.workers)):
            worker.pause_engine()
            jobs = scene.place.jobs(worker.incarnation)
            if {"tool calls", "schemas", "pairs"} <= _amid(scene, {job for job, last in jobs.items() if last > _AMID}):
                found.append((worker, list(jobs)))
                return True
            worker.resume()
        return False

    scene.wait(look, "a worker is in the middle of schemas, tool calls and pairs", 60.0)
    return found[0]


def _amid(scene: Scene, stream_ids: set[str]) -> set[str]:
    """The traits of the requests that these streams answer, as far as their clients know them."""
    asked = [told.ask for told in list(scene.work.history.turns) if told.stream_id in stream_ids]
    return {trait for name in asked for trait in _traits(scene.work.history.asks[name])}


def worker_killed(scene: Scene) -> None:
    """A worker is killed in the middle of answers of a form: others go on with them, in the same form."""
    worker, jobs = _caught(scene)
    worker_faults.killed(scene, worker, jobs)


def engine_killed(scene: Scene) -> None:
    """An engine is killed in the middle of answers of a form: their grammars are built again elsewhere."""
    worker, jobs = _caught(scene)
    deaths, num_restarts, engine = worker.metric("axon_failovers_total"), worker.num_engine_restarts, worker.engine_pid
    scene.strike(jobs)
    os.kill(engine, signal.SIGKILL)
    worker.resume()
    scene.wait(lambda: state_of(engine) == "X", "the engine's process is gone")
    scene.wait(lambda: worker.metric("axon_failovers_total") > deaths, "its worker has noticed")
    scene.wait(lambda: worker.num_engine_restarts > num_restarts, "there is a new one", 60.0)


def gateway_killed(scene: Scene) -> None:
    """A gateway is killed while it streams answers of a form: their readers go on at another, at any event."""
    gateway = scene.rng.choice(scene.fleet.gateways)

    def running() -> set[str]:
        return _amid(scene, {told.stream_id for told in scene.work.history.running if len(told.pieces) > _AMID})

    asked = {trait for ask in scene.work.history.asks.values() for trait in _traits(ask)}
    scene.wait(lambda: running() >= asked, "schemas, tool calls and pairs are read, seeded and greedy")
    scene.strike()
    struck_at = scene.work.now
    gateway.kill()
    scene.prove(state_of(gateway.pid) == "X", "the gateway's process is gone")
    scene.wait(lambda: _num_cut_off(scene, struck_at) > 0, "streams were cut off")
    gateway.start()


def _num_cut_off(scene: Scene, since: float) -> int:
    losses = [loss for told in list(scene.work.history.turns) for loss in told.losses]
    return sum(float(loss.split()[0]) >= since - 0.5 for loss in losses)


FAULTS = [
    Fault(
        name="structured: worker killed",
        happen=worker_killed,
        load="structured",
        rounds=3,
        goal_s=3.0,
    ),
    Fault(
        name="structured: engine killed",
        happen=engine_killed,
        load="structured",
        rounds=3,
        goal_s=3.0,
        tested="one of ten",
    ),
    Fault(
        name="structured: gateway killed",
        happen=gateway_killed,
        load="structured",
        rounds=3,
        num_clients=36,
        goal_s=3.0,
    ),
    Fault(
        name="structured: the only process killed",
        happen=alone_faults.killed,
        stage="alone",
        load="structured",
        rounds=2,
        num_clients=12,
        root=True,
    ),
]
