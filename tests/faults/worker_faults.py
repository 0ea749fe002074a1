"""Workers and engines that die, hang, or stand still and go on."""

import os
import signal

from tests.faults.fault import Fault, Scene
from tests.faults.fleet import Process, state_of

_FAILPOINT_EXIT_CODE = 86
_ENDING_POINTS = ("ending.before_journal", "ending.after_journal", "ending.settled")


def killed(scene: Scene, worker: Process, jobs: list[str]) -> None:
    """SIGKILL, its lease lapses, another one owns what it had, and it comes back."""
    scene.strike(jobs)
    worker.kill()
    scene.prove(state_of(worker.pid) == "X", "the worker's process is gone")
    lost = worker.incarnation
    scene.wait(lambda: lost not in scene.place.leases(), "its lease has lapsed", 60.0)
    scene.wait(lambda: not scene.place.jobs(lost), "others have what it had", 60.0)
    worker.start()


def killed_in_prefill(scene: Scene) -> None:
    """A worker is killed while it reads prompts: jobs it has claimed have no token yet."""
    worker, jobs = scene.caught(lambda last: last == 0, "a worker has jobs without a token")
    killed(scene, worker, jobs)


def killed_in_decode(scene: Scene) -> None:
    """A worker is killed in the middle of its answers."""
    worker, _ = scene.caught(lambda last: last > 5, "a worker is in the middle of answers")
    killed(scene, worker, list(scene.place.jobs(worker.incarnation)))


def killed_before_ack(scene: Scene) -> None:
    """A worker dies between an answer's last token and the ack of its delivery, at each step in between."""
    point = _ENDING_POINTS[len(scene.hits) % len(_ENDING_POINTS)]
    doomed = scene.fleet.add("worker", failpoints=f"{point}=kill:3")
    scene.wait(lambda: doomed.exit_code is not None, f"a worker dies at {point}", 60.0)
    scene.strike()
    scene.prove(doomed.exit_code == _FAILPOINT_EXIT_CODE, f"it died at {point}, not of something else")
    scene.wait(lambda: not scene.place.jobs(doomed.incarnation), "others have what it had", 60.0)
    scene.fleet.remove(doomed)


def paused(scene: Scene) -> None:
    """A worker stands still until others have its jobs, and then goes on: what it says is refused."""
    worker, jobs = scene.caught(lambda last: last > 0, "a worker is in the middle of answers")
    fenced = worker.metric("axon_fenced_writes_total")
    worker.resume()
    worker.pause()
    jobs = list(scene.place.jobs(worker.incarnation))
    scene.strike(jobs)
    scene.prove(jobs and state_of(worker.pid) == "T", "it stands still with jobs in its hands")
    scene.wait(lambda: worker.incarnation not in scene.place.leases(), "its lease has lapsed", 60.0)
    scene.wait(lambda: not scene.place.jobs(worker.incarnation), "others have what it had", 60.0)
    scene.prove(state_of(worker.pid) == "T", "it has stood still until then")
    worker.resume()
    scene.wait(lambda: worker.metric("axon_fenced_writes_total") > fenced, "its late words are fenced")


def engine_killed(scene: Scene) -> None:
    """An engine's process is killed under its worker: its jobs go on at another one, which has room."""
    worker, jobs = scene.caught(lambda last: last > 0, "an engine is in the middle of answers")
    deaths, given = worker.metric("axon_failovers_total"), worker.metric("axon_handed_over_total")
    num_restarts, engine = worker.num_engine_restarts, worker.engine_pid
    scene.strike(jobs)
    os.kill(engine, signal.SIGKILL)
    worker.resume()
    scene.wait(lambda: state_of(engine) == "X", "the engine's process is gone")
    scene.wait(lambda: worker.metric("axon_failovers_total") > deaths, "its worker has noticed")
    scene.wait(lambda: worker.metric("axon_handed_over_total") > given, "others have what was in it")
    scene.wait(lambda: worker.num_engine_restarts > num_restarts, "there is a new one", 60.0)


def engine_hung(scene: Scene) -> None:
    """An engine makes no step any more, though it lives: its worker kills and replaces it."""
    worker, jobs = scene.caught(lambda last: last > 0, "an engine is in the middle of answers")
    deaths = worker.metric("axon_failovers_total")
    engine = worker.engine_pid
    scene.strike(jobs)
    scene.prove(state_of(engine) == "T", "the engine stands still")
    scene.wait(lambda: state_of(engine) == "X", "its worker has killed it", 60.0)
    scene.wait(lambda: worker.metric("axon_failovers_total") > deaths, "and counts that")
    scene.prove("engine.hangs" in worker.log, "and says why")
    worker.resume()


FAULTS = [
    Fault(name="worker killed in prefill", happen=killed_in_prefill, rounds=2, goal_s=3.0),
    Fault(name="worker killed in decode", happen=killed_in_decode, rounds=2, goal_s=3.0, tested="always"),
    Fault(name="worker killed before the ack", happen=killed_before_ack, rounds=3, goal_s=3.0),
    Fault(name="worker paused, then goes on", happen=paused, rounds=2, hangs=True, goal_s=5.0, tested="one of ten"),
    Fault(name="engine killed in a fleet", happen=engine_killed, rounds=2, goal_s=3.0),
    Fault(name="engine hung", happen=engine_hung),
]
