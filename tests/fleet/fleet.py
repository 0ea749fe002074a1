"""A whole fleet on this machine: gateways, workers and controls over real services, nginx before them.

    with ExitStack() as stack:
        fleet = shared_fleet(folder, stack, engine_echo_step_s=0.01)
        fleet.start(gateways=2, workers=2, controls=2)
        fleet.workers[0].kill()
        fleet.add("worker", failpoints="ending.before_journal=kill")

Each member is one process; see ``Member`` for what can be done to it.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import httpx

from axon.runtime.datafolder import read_or_make_secret
from tests.contracts import postgres_backend
from tests.fleet import launched
from tests.fleet.edge import Edge
from tests.fleet.member import Member, Role
from tests.journeys.server import MODELS, START_S
from tests.services import rabbitmq, warm
from tests.services import redis as redis_service
from tests.services.require import require

_BREAK_OFF_S = 5.0
"""For members that are told to end while they start: they hold nothing that somebody waits for."""

ECHO = {"engine_kind": "echo", "admission_requests_per_minute": 0}


class Fleet:
    """``start`` and ``add``, then ``stop``; ``place`` are the settings by which its members meet."""

    def __init__(self, folder: Path, place: Mapping[str, object], **settings: object) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.members: list[Member] = []
        self.edge: Edge | None = None
        self._is_starting = False
        self._settings = {"models_dir": MODELS, **place, "data_dir": self.data_dir, **settings}
        read_or_make_secret(self.data_dir / "pepper")  # for all gateways: none makes one of its own

    @property
    def gateways(self) -> list[Member]:
        return self._of("gateway")

    @property
    def workers(self) -> list[Member]:
        return self._of("worker")

    @property
    def controls(self) -> list[Member]:
        return self._of("control")

    @property
    def store(self) -> object:
        """Where its records are."""
        return self._settings["store"]

    @property
    def key(self) -> str:
        """The key that its first gateway made."""
        return (self.data_dir / "dev-key").read_text().strip()

    @property
    def url(self) -> str:
        """Of the whole fleet."""
        assert self.edge is not None
        return self.edge.url

    def start(
        self,
        *,
        gateways: int = 2,
        workers: int = 2,
        controls: int = 1,
        edge_port: int = 0,
        timeout_s: float = START_S,
        meanwhile: Callable[["Fleet"], None] = lambda fleet: None,
    ) -> "Fleet":
        """Everything at once; returns when all of it is ready. A signal's exception ends the waiting. ``meanwhile`` is
        called when all are started: without workers, gateways are ready when a deployment is registered."""
        self._is_starting = True
        roles: dict[Role, int] = {"control": controls, "worker": workers, "gateway": gateways}
        made = [self.make(role) for role, count in roles.items() for _ in range(count)]
        self.edge = Edge(self.folder / "edge", [each.port for each in self.gateways], edge_port)
        starts: list[Callable[[], object]] = [self.edge.start, *(partial(each.start, wait=False) for each in made)]
        with ThreadPoolExecutor(max_workers=1) as starting:  # no signal comes here, between a process and its name
            for started in [starting.submit(start) for start in starts]:
                started.result()
        meanwhile(self)
        for each in made:
            each.wait_ready(timeout_s)
        self._is_starting = False
        return self

    def add(self, role: Role, **settings: object) -> Member:
        """One more member, ready."""
        return self.make(role, **settings).start()

    def make(self, role: Role, **settings: object) -> Member:
        """One more member, not started."""
        name = f"{role}-{len(self._of(role)) + 1}"
        member = Member(role, name, self.folder, {**self._settings, **settings})
        self.members.append(member)
        return member

    def axon(self, *arguments: str, timeout_s: float = 60.0) -> str:
        """What a command of the operator's prints, with the fleet's own services."""
        environ = self.gateways[0].environment()
        return warm.run(arguments, environ=environ, folder=self.folder, check=True, timeout_s=timeout_s).stdout

    def client(self, url: str = "") -> httpx.Client:
        """One that has the key, of the fleet or of one gateway."""
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=url or self.url, headers=headers, timeout=60)

    def stop(self) -> dict[str, int]:
        """Ends everything, whatever state it is in; the exit code of each member."""
        for each in self.members:
            each.resume()
            if each.alive:
                each.send(signal.SIGTERM)
        try:
            if self._is_starting:
                return self._break_off()
            return {each.name: each.wait() for each in self.members}
        finally:
            launched.end(self.data_dir)  # they outlive their control
            if self.edge is not None:
                self.edge.stop()

    def _break_off(self) -> dict[str, int]:
        """The end of members that have been told to; one that reads a large model does not hear it."""
        deadline = time.monotonic() + _BREAK_OFF_S
        for each in self.members:
            with suppress(subprocess.TimeoutExpired):
                each.wait(max(0.0, deadline - time.monotonic()))
        return {each.name: each.wait() for each in self.members}

    def _of(self, role: Role) -> list[Member]:
        return [each for each in self.members if each.role == role]


def shared_place() -> dict[str, object]:
    """A place on the services that all tests share."""
    require("redis-server", "rabbitmq-server", "postgres", "nginx")
    return {
        "namespace": rabbitmq.new_namespace(),
        "queue": rabbitmq.shared_server().url,
        "live": redis_service.shared_server(cluster=False).url,
        "store": postgres_backend.shared_server().create_database(postgres_backend.TEMPLATE),
    }


def shared_fleet(folder: Path, stack: ExitStack, **settings: object) -> Fleet:
    """A fleet of echo engines on the shared services, not started; it ends with the stack."""
    fleet = Fleet(folder, shared_place(), **{**ECHO, **settings})
    stack.callback(fleet.stop)
    return fleet
