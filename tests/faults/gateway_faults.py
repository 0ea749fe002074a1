"""Gateways that die with streams open, and between any two steps of accepting."""

from tests.faults.fault import Fault, Scene
from tests.faults.fleet import state_of

_FAILPOINT_EXIT_CODE = 86
_ACCEPTING_POINTS = (
    "opening.admitted",
    "dispatch.opened",
    "dispatch.journaled",
    "dispatch.published",
    "dispatch.accepted",
)
_NUM_STREAMS = 50


def killed(scene: Scene) -> None:
    """A gateway is killed while 50 streams run; their readers go on at another."""
    gateway = scene.rng.choice(scene.fleet.gateways)
    scene.work.wait_for_running(min(_NUM_STREAMS, scene.work.num_clients * 2 // 3))
    scene.strike()
    gateway.kill()
    scene.prove(state_of(gateway.pid) == "X", "the gateway's process is gone")
    struck_at = scene.work.now
    cut = [told for told in scene.work.history.turns if told.losses and told.asked_at < struck_at]
    scene.wait(lambda: cut or _cut_off(scene, struck_at), "streams were cut off")
    gateway.start_again()


def _cut_off(scene: Scene, since: float) -> bool:
    return any(float(loss.split()[0]) >= since for told in scene.work.history.running for loss in told.losses)


def killed_accepting(scene: Scene) -> None:
    """A gateway dies between two steps of accepting a request, with others in every state."""
    point = _ACCEPTING_POINTS[len(scene.hits) % len(_ACCEPTING_POINTS)]
    doomed = scene.fleet.add(failpoints=f"{point}=kill:{scene.rng.randint(2, 5)}")
    scene.wait(lambda: doomed.exit_code is not None, f"a gateway dies at {point}", 60.0)
    scene.strike()
    scene.prove(doomed.exit_code == _FAILPOINT_EXIT_CODE, f"it died at {point}, not of something else")
    scene.fleet.remove(doomed)


FAULTS = [
    Fault(name="gateway killed under 50 streams", happen=killed, rounds=2, num_clients=75, goal_s=3.0),
    Fault(name="gateway killed while accepting", happen=killed_accepting, rounds=5, goal_s=3.0, sliced=True),
]
