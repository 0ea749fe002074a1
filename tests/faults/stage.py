"""Services of a fault's own and a fleet on them, opened once for all faults of a kind. Knows no fault and no client.

plain    Redis, RabbitMQ and PostgreSQL, each on its own
ways     the same behind forwarders: Redis with a replica, PostgreSQL with a synchronous standby, and a way of the first
         worker's own to RabbitMQ
cluster  three RabbitMQ nodes behind a forwarder
zones    both: every service has what takes over in another zone, and half of the fleet is in each
small    Redis and PostgreSQL on small disks
alone    one process with no service at all, its data folder and its log on a small disk
"""

import itertools
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from tests.faults import model
from tests.faults.asks import NUM_ASKS, make_asks, undisturbed
from tests.faults.fleet import Fleet, Process
from tests.faults.place import LonePlace, Place
from tests.faults.proxy import Forwarder
from tests.faults.structured_asks import make_structured_asks
from tests.services import rabbitmq
from tests.services.disk import SmallDisk
from tests.services.postgres import PostgresServer
from tests.services.rabbitmq import RabbitServer
from tests.services.rabbitmq_cluster import RabbitCluster
from tests.services.redis import RedisServer
from tests.services.require import require

if TYPE_CHECKING:
    from tests.faults.history import Ask
    from tests.fleet.member import Role

Kind = Literal["plain", "ways", "cluster", "zones", "small", "alone"]
Load = Literal["plain", "structured"]
"""What clients ask for: any text, or answers of a form."""
ZONES = ("a", "b")
"""The first one is lost."""
KINDS: tuple[Kind, ...] = get_args(Kind)
_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "faults"
_OTHER_TENANT = "other"
_DISK_BYTES = {"redis": 24 << 20, "postgres": 256 << 20, "alone": 48 << 20}


class Stage:
    """``open`` once; what a fault breaks, it heals, so that the next finds it well."""

    def __init__(
        self,
        kind: Kind,
        *,
        seed: int,
        step_s: float = model.STEP_S,
        num_asks: int = NUM_ASKS,
        has_shelf: bool = False,
        has_head: bool = False,
    ) -> None:
        self.kind, self.seed = kind, seed
        self._step_s, self._num_asks, self._has_shelf = step_s, num_asks, has_shelf
        self.has_head = has_head
        """Whether a draft head drafts for the streams."""
        self._stack = ExitStack()
        self._numbers = itertools.count()
        self.rabbits: list[RabbitServer] = []
        self.disks: dict[str, SmallDisk] = {}
        self.base_fds: dict[str, int] = {}
        self.keys: dict[str, str] = {}
        """One of each tenant."""
        self.condemned: dict[str, str] = {}
        """Turns that must fail, with the code. They stay in the store, which later faults on this stage check too."""
        self._asks: dict[Load, list[Ask]] = {}

    def open(self) -> "Stage":
        require("redis-server", "rabbitmq-server", "postgres", "initdb")
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        self._stack.close()

    def _open(self) -> None:
        # Not below pytest's own folder: another run shuts that to all but its user, and as root our servers are
        # somebody else.
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="axon-faults-")))
        self.place: Place = LonePlace(folder=self._disk("alone")) if self.kind == "alone" else self._shared_place()
        settings = self._model_settings()
        if self._has_shelf:
            settings |= model.shelf(self.folder / "kv")
        self.fleet = Fleet(self.place, settings, step_s=self._step_s)
        self._stack.callback(self.fleet.close)
        self.fleet.start(*self._processes())
        if self.kind != "alone":
            self.place.rabbit.sync()
        self.keys = {"default": self.place.key, _OTHER_TENANT: self.fleet.processes[0].make_key(_OTHER_TENANT)}
        self.asks_of("plain")
        self.note_base()

    def _model_settings(self) -> dict[str, object]:
        if self.has_head:
            return model.head_settings(self.folder)
        return model.settings(model.make_model(self.folder / "model", **model.changes()))

    @property
    def asks(self) -> list["Ask"]:
        return self._asks["plain"]

    @property
    def known_asks(self) -> dict[str, "Ask"]:
        """Every ask of any load so far, by its name: the store may have answers to all of them."""
        return {ask.name: ask for asks in self._asks.values() for ask in asks}

    def asks_of(self, load: Load) -> list["Ask"]:
        """The asks of a load with their undisturbed answers; ask for them while nothing is broken."""
        if load not in self._asks:
            make = make_asks if load == "plain" else make_structured_asks
            self._asks[load] = undisturbed(self.fleet.gateways[0], make(self.seed, self._num_asks), _CACHE)
        return self._asks[load]

    def _processes(self) -> list[Process]:
        """Two of each role; the first worker may have a way of its own to the broker."""
        if self.kind == "alone":
            self.fleet.make("gateway").command = "serve"
            return self.fleet.processes
        if self.kind == "zones":
            both: list[Role] = ["worker", "control", "gateway"]
            return [self.fleet.make(role, zone=zone) for zone in ZONES for role in both]
        own = {"queue": self.queue_way_url} if self.kind == "ways" else {}
        roles: list[Role] = ["worker", "control", "control", "gateway", "gateway"]
        return [self.fleet.make("worker", **own), *map(self.fleet.make, roles)]

    def _shared_place(self) -> Place:
        rabbit = self._rabbit()
        place = self.place = Place(folder=self.folder, rabbit=rabbit, urls={"queue": rabbit.url})
        self._open_redis()
        self._open_postgres()
        if self.kind in ("ways", "cluster", "zones"):
            self.rabbit_way = self._way(rabbit.port)
            self.queue_way_url = rabbit.url.replace(f":{rabbit.port}/", f":{self.rabbit_way.port}/")
        if self.kind in ("cluster", "zones"):
            place.urls["queue"] = self.queue_way_url
        return place

    def note_base(self) -> None:
        """What the processes hold when nothing runs."""
        self.base_fds = {process.name: process.num_fds for process in self.fleet.processes}

    def _rabbit(self) -> RabbitServer:
        if self.kind not in ("cluster", "zones"):
            return rabbitmq.started_victim()
        require("rabbitmq-server", "epmd")
        self.cluster = RabbitCluster(self.folder / "rabbitmq")
        self._started(self.cluster.start, self.cluster.remove)
        self.rabbits = list(self.cluster.nodes)
        return self.rabbits[0]

    def _open_redis(self) -> None:
        self.redis = RedisServer(self._disk("redis"))
        self._started(self.redis.start, self.redis.kill)
        self.place.live_port, url = self.redis.port, self.redis.url
        if self.kind in ("ways", "zones"):
            self.new_replica()
            self.redis_way = self._way(self.redis.port)
            url = f"redis://127.0.0.1:{self.redis_way.port}"
        self.place.urls["live"] = url

    def new_replica(self) -> None:
        """Redis has a replica to fail over to."""
        self.replica = self.redis.replica(self.folder / f"replica-{next(self._numbers)}")
        self._stack.callback(self.replica.kill)

    def _open_postgres(self) -> None:
        self.postgres = PostgresServer(self._disk("postgres"), {"max_wal_size": "64MB"})
        self._started(self.postgres.start, self.postgres.kill)
        self.place.store_url = url = self.postgres.create_database()
        if self.kind in ("ways", "zones"):
            self.standby = self.postgres.standby(self.folder / "standby")
            self._stack.callback(self.standby.kill)
            self.postgres_way = self._way(self.postgres.port)
            url = url.replace(f":{self.postgres.port}/", f":{self.postgres_way.port}/")
        self.place.urls["store"] = url

    def _disk(self, name: str) -> Path:
        if self.kind not in ("small", "alone"):
            return self.folder / name
        disk = self.disks[name] = SmallDisk(self.folder / f"{name}-disk", num_bytes=_DISK_BYTES[name])
        self._started(disk.mount, disk.unmount)
        (disk.folder / name).mkdir()
        return disk.folder / name

    def _way(self, port: int) -> Forwarder:
        return self._stack.enter_context(Forwarder(port))

    def _started(self, start: Callable[[], object], stop: Callable[[], object]) -> None:
        self._stack.callback(stop)
        start()


class Stages:
    """The stage that is open: kept while the next fault is of the same kind."""

    def __init__(
        self,
        *,
        seed: int,
        step_s: float = model.STEP_S,
        num_asks: int = NUM_ASKS,
        has_shelf: bool = False,
        has_head: bool = False,
    ) -> None:
        self._make = partial(Stage, seed=seed, step_s=step_s, num_asks=num_asks, has_shelf=has_shelf, has_head=has_head)
        self._open: Stage | None = None

    def get(self, kind: Kind) -> Stage:
        if self._open is not None and self._open.kind != kind:
            self.close()
        if self._open is None:
            self._open = self._make(kind).open()
        return self._open

    def close(self) -> None:
        """Also when a fault could not be healed: the next gets a new one."""
        stage, self._open = self._open, None
        if stage is not None:
            stage.close()
