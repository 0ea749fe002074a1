"""One process with no service: killed, and without room on its disk."""

import os
import signal

import httpx

from tests.faults.checkers import HANGS_S
from tests.faults.fault import Fault, Scene
from tests.faults.fleet import state_of


def killed(scene: Scene) -> None:
    """The only process is killed and started again: what it had accepted is answered."""
    [server] = scene.fleet.processes
    scene.strike()
    server.kill()
    scene.prove(state_of(server.pid) == "X", "the process is gone")
    server.start()
    scene.prove("turns.recovered" in server.log, "it took up again what had not ended")


def engine_killed(scene: Scene) -> None:
    """The engine of the only process is killed: its jobs are replayed in the next one."""
    [server] = scene.fleet.processes
    num_restarts, engine = server.num_engine_restarts, server.engine_pid
    scene.strike()
    os.kill(engine, signal.SIGKILL)
    scene.wait(lambda: state_of(engine) == "X", "the engine's process is gone")
    scene.wait(lambda: server.num_engine_restarts > num_restarts, "there is a new one", 60.0)


def disk_full(scene: Scene) -> None:
    """The disk that SQLite and the log write to is full: new requests are refused until there is room."""
    [server] = scene.fleet.processes
    disk = scene.stage.disks["alone"]
    scene.strike()
    disk.fill()
    scene.prove(disk.free_bytes == 0, "not another byte fits")
    scene.wait(lambda: _refused(scene, server.url), "new requests are refused: there is no room")
    disk.empty()


def _refused(scene: Scene, url: str) -> bool:
    """Whether a new request is refused for want of room, and told when to come back."""
    headers = {"Authorization": f"Bearer {scene.stage.keys['default']}"}
    reply = httpx.post(f"{url}/v1/completions", json=scene.stage.asks[0].body, headers=headers, timeout=HANGS_S)
    code = "" if reply.status_code == 200 else reply.json()["error"]["code"]
    return (reply.status_code, code) == (503, "storage_full") and "retry-after-ms" in reply.headers


FAULTS = [
    Fault(
        name="engine killed alone",
        happen=engine_killed,
        stage="alone",
        rounds=2,
        num_clients=12,
        goal_s=3.0,
        root=True,
    ),
    Fault(name="the only process killed", happen=killed, stage="alone", rounds=2, num_clients=12, root=True),
    Fault(name="SQLite's disk full", happen=disk_full, stage="alone", num_clients=12, root=True),
]
