"""Redis killed, flushed, failed over with a lost tail, silent, and without room on its disk."""

import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.faults.fault import Fault, Scene
from tests.faults.place import Place
from tests.services.process import listening
from tests.services.redis import RedisServer

_SILENT_S = 5.0
_FULL_S = 3.0
_EARLY_SEQ = 8
"""An answer with so few tokens does not end within a look."""


def _run_id(server: RedisServer) -> str:
    with server.admin() as admin:
        return str(admin.info("server")["run_id"])


def _last_seqs(server: RedisServer, place: Place) -> dict[str, int]:
    """The last seq of every job that a Redis knows of."""
    with server.admin() as admin:
        keys = [key.decode() for key in admin.scan_iter(f"{place.namespace}:*:job", count=1000)]
        return {key: int(admin.hget(key, "last") or 0) for key in keys}


def _num_ahead(primary: dict[str, int], replica: dict[str, int]) -> int:
    """How many streams are longer on one than on the other, which knows of them."""
    return sum(last > replica[key] > 0 for key, last in primary.items() if key in replica)


def restarted(scene: Scene) -> None:
    """Redis is killed and started again with what its file holds."""
    victim = scene.stage.redis
    first_life = _run_id(victim)
    scene.strike()
    victim.kill()
    scene.prove(not listening(victim.port), "Redis is gone")
    victim.start()
    scene.prove(_run_id(victim) != first_life, "and back, in a new life")


def flushed(scene: Scene) -> None:
    """Everything Redis holds is lost at once."""
    running: list[str] = []

    def begun() -> bool:
        # Not what clients have not read to the end: on busy cores that may have ended.
        jobs = [scene.place.jobs(worker.incarnation) for worker in scene.fleet.workers]
        running.extend(job for each in jobs for job, last in each.items() if last <= _EARLY_SEQ)
        return bool(running)

    scene.wait(begun, "workers have answers in hand that have just begun")
    scene.strike()
    with scene.stage.redis.admin() as admin:
        pipe = admin.pipeline(transaction=True)  # nobody writes between the loss and the look
        pipe.flushall()
        pipe.dbsize()
        scene.prove(pipe.execute()[1] == 0, "Redis is empty")
    scene.wait(lambda: any(scene.place.job(each) for each in running), "a worker tells again what it remembers")


def failed_over(scene: Scene) -> None:
    """A replica takes over that lacks the last seconds."""
    stage = scene.stage
    primary, replica = stage.redis, stage.replica
    primary.replicate()
    replica.cut_off()
    known = _last_seqs(replica, scene.place)
    scene.wait(lambda: _num_ahead(_last_seqs(primary, scene.place), known) >= 4, "the primary is ahead of its replica")
    told = _last_seqs(primary, scene.place)
    scene.strike()
    primary.kill()
    replica.promote()
    scene.prove(not listening(primary.port), "the primary is gone")
    scene.prove(_num_ahead(told, _last_seqs(replica, scene.place)) >= 4, "the tail is lost")
    stage.redis_way.switch(replica.port)
    scene.place.live_port = replica.port
    stage.redis = replica
    stage.new_replica()


def silent(scene: Scene) -> None:
    """Redis takes connections and bytes for five seconds, and answers nothing."""
    way = scene.stage.redis_way
    scene.strike()
    way.swallow()
    until = time.monotonic() + _SILENT_S
    with redis.Redis(port=way.port, protocol=2, socket_timeout=0.5, retry=Retry(NoBackoff(), 0)) as cut_off:
        try:
            cut_off.ping()
            heard = True
        except redis.TimeoutError:
            heard = False
    scene.prove(not heard, "Redis does not answer")
    scene.wait(lambda: not scene.place.leases(), "the workers cannot renew their leases", 10.0)
    scene.wait(lambda: time.monotonic() > until, f"that lasts for {_SILENT_S:g} s")
    way.heal()


def disk_full(scene: Scene) -> None:
    """Redis finds no room for its file and refuses every write until there is some."""
    victim, disk = scene.stage.redis, scene.stage.disks["redis"]
    scene.strike()
    disk.fill()
    scene.prove(disk.free_bytes == 0, "not another byte fits")
    scene.wait(lambda: _refuses(victim), "Redis refuses to write")
    until = time.monotonic() + _FULL_S
    scene.wait(lambda: time.monotonic() > until, f"that lasts for {_FULL_S:g} s")
    disk.empty()
    scene.wait(lambda: not _refuses(victim), "Redis writes again")


def _refuses(server: RedisServer) -> bool:
    with server.admin() as admin:
        try:
            admin.set("faults", "x" * 65536, ex=60)
        except redis.ResponseError as error:
            return "MISCONF" in str(error)
    return False


FAULTS = [
    Fault(name="Redis killed and restarted", happen=restarted, rounds=2, goal_s=5.0, tested="one of ten"),
    Fault(name="Redis flushed", happen=flushed, rounds=3, goal_s=5.0, tested="always"),
    Fault(
        name="Redis failed over, tail lost",
        happen=failed_over,
        stage="ways",
        rounds=2,
        forgets=True,
        goal_s=5.0,
        tested="one of ten",
    ),
    Fault(name="Redis silent for 5 s", happen=silent, stage="ways", goal_s=10.0, tested="one of ten"),
    Fault(name="Redis's disk full", happen=disk_full, stage="small", goal_s=10.0, root=True),
]
