"""Gateways that die with streams open, and between any two steps of accepting; and control, that dies."""

from tests.faults.fault import Fault, Scene
from tests.faults.fleet import Process, state_of

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
    struck_at = scene.work.now - 0.5
    scene.wait(lambda: _cut_off(scene, struck_at), "streams were cut off")
    gateway.start()


def _cut_off(scene: Scene, since: float) -> bool:
    return any(float(loss.split()[0]) >= since for told in list(scene.work.history.turns) for loss in told.losses)


def killed_accepting(scene: Scene) -> None:
    """A gateway dies between two steps of accepting a request, with others in every state."""
    point = _ACCEPTING_POINTS[len(scene.hits) % len(_ACCEPTING_POINTS)]
    doomed = scene.fleet.add("gateway", failpoints=f"{point}=kill:{scene.rng.randint(2, 5)}")
    scene.wait(lambda: doomed.exit_code is not None, f"a gateway dies at {point}", 60.0)
    scene.strike()
    scene.prove(doomed.exit_code == _FAILPOINT_EXIT_CODE, f"it died at {point}, not of something else")
    scene.fleet.remove(doomed)


def control_killed(scene: Scene) -> None:
    """The control that leads is killed and the other takes over; then both are gone for a while."""
    leader = _leader(scene)
    scene.strike()
    leader.kill()
    scene.prove(state_of(leader.pid) == "X", "the leader is gone")
    scene.wait(lambda: any(each.metric("axon_leads") for each in _living(scene)), "the other leads")
    for control in _living(scene):
        control.kill()
    scene.prove(not _living(scene), "no control is left")
    scene.work.wait_for_ended(scene.work.num_clients // 2, asked_after=scene.work.now)
    scene.fleet.start(*scene.fleet.controls)
    scene.wait(lambda: any(each.metric("axon_leads") for each in _living(scene)), "one leads again")


def _leader(scene: Scene) -> Process:
    scene.wait(lambda: any(each.metric("axon_leads") for each in _living(scene)), "a control leads")
    return next(each for each in _living(scene) if each.metric("axon_leads"))


def _living(scene: Scene) -> list[Process]:
    return [control for control in scene.fleet.controls if control.alive]


FAULTS = [
    Fault(name="gateway killed under 50 streams", happen=killed, rounds=2, num_clients=75, goal_s=3.0),
    Fault(name="gateway killed while accepting", happen=killed_accepting, rounds=5, goal_s=3.0, tested="always"),
    Fault(name="control killed", happen=control_killed, goal_s=1.0, tested="one of ten"),
]
