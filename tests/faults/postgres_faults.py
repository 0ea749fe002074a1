"""PostgreSQL away, promoted from its standby, and without room on its disk: nobody waits for it."""

import time
from contextlib import suppress

import httpx
import psycopg

from axon.domain.tenants.key import new_key_text
from tests.faults.checkers import HANGS_S
from tests.faults.fault import Fault, Scene
from tests.services.postgres import PostgresServer
from tests.services.process import listening, wait_for

_AWAY_S = 20.0


def _answer_to_a_stranger(url: str) -> tuple[int, bool]:
    """The status for a key that nobody has made, and whether to come back."""
    _, text = new_key_text()
    reply = httpx.get(f"{url}/v1/models", headers={"Authorization": f"Bearer {text}"}, timeout=HANGS_S)
    return reply.status_code, "retry-after-ms" in reply.headers


def away(scene: Scene) -> None:
    """PostgreSQL is away for 20 s: known keys are served, answers go on, the journal keeps."""
    victim, gateway = scene.stage.postgres, scene.fleet.gateways[0]
    scene.strike()
    victim.stop()
    scene.prove(not listening(victim.port), "PostgreSQL is gone")
    stopped_at, until = scene.work.now, time.monotonic() + _AWAY_S
    scene.prove(_answer_to_a_stranger(gateway.url) == (503, True), "an unknown key is not refused, but put off")
    scene.work.wait_for_ended(scene.work.num_clients // 2, asked_after=stopped_at, timeout_s=60.0)
    wait_for(lambda: time.monotonic() > until, "it was away for long enough")
    scene.prove(not listening(victim.port), "it was away all the while, and turns were asked and answered")
    victim.start()
    scene.wait(lambda: _answer_to_a_stranger(gateway.url) == (401, False), "it is back")


def promoted(scene: Scene) -> None:
    """PostgreSQL is killed and its synchronous standby promoted: no ended turn is missing there."""
    stage = scene.stage
    primary, standby = stage.postgres, stage.standby
    scene.strike()
    primary.kill()
    scene.prove(not listening(primary.port), "the primary is gone")
    scene.prove(standby.execute("SELECT pg_is_in_recovery()") == [(True,)], "the standby stands by")
    standby.promote()
    scene.prove(standby.execute("SELECT pg_is_in_recovery()") == [(False,)], "and is promoted")
    stage.postgres_way.switch(standby.port)
    scene.place.store_url = scene.place.store_url.replace(f":{primary.port}/", f":{standby.port}/")
    stage.postgres = standby


def disk_full(scene: Scene) -> None:
    """PostgreSQL's disk is full: it refuses or dies, and goes on when there is room."""
    victim, disk = scene.stage.postgres, scene.stage.disks["postgres"]
    scene.strike()
    disk.fill()
    scene.prove(disk.free_bytes == 0, "not another byte fits")
    scene.wait(lambda: _finds_no_space(victim), "PostgreSQL finds no space", 60.0)
    scene.work.wait_for_ended(scene.work.num_clients // 2, asked_after=scene.work.now)
    disk.empty()
    if not victim.alive:
        victim.start()
    scene.wait(lambda: _answer_to_a_stranger(scene.fleet.gateways[0].url) == (401, False), "it is well again", 60.0)


def _finds_no_space(server: PostgresServer) -> bool:
    """Hurries it to its next file, which it would come to by itself."""
    with suppress(psycopg.Error):
        server.execute("SELECT pg_logical_emit_message(false, 'faults', repeat('x', 1000000))")
        server.execute("SELECT pg_switch_wal()")
    return "No space left on device" in server.output


FAULTS = [
    Fault(name="PostgreSQL away for 20 s", happen=away, goal_s=1.0, tested="one of ten"),
    Fault(name="PostgreSQL's standby promoted", happen=promoted, stage="ways", goal_s=1.0, tested="one of ten"),
    Fault(name="PostgreSQL's disk full", happen=disk_full, stage="small", goal_s=1.0, root=True),
]
