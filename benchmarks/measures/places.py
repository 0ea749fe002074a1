"""Servers in the three places where the path is measured: embedded, on the services, as a fleet. Measures nothing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.fleet.fleet import Fleet

from benchmarks.measures.load import Endpoint
from benchmarks.measures.stage import started_services
from benchmarks.peers import engines
from benchmarks.peers.server import cpu_s, running

NAMES = ("embedded", "services", "fleet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a server in this place is started with, and the services that it uses."""

    name: str
    urls: Mapping[str, str] = field(default_factory=dict)
    """``queue``, ``live`` and ``store``; empty for the twins."""
    service_pids: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A server that runs."""

    endpoint: Endpoint
    pid: int
    """Of the process that readers are connected to."""
    metrics_port: int
    roots: Mapping[str, int]
    """First process of every part, services included, by its name."""

    def own_cpu_s(self) -> float:
        """CPU time of the process that readers are connected to."""
        return cpu_s(self.pid)


@contextmanager
def places(names: Sequence[str]) -> Iterator[list[Place]]:
    """The places; the services run while the block does. Each has its own: a first server makes its key."""
    with ExitStack() as stack:
        found = []
        for name in names:
            if name == "embedded":
                found.append(Place(name=name))
                continue
            services = stack.enter_context(started_services())
            urls = {"queue": services.urls.queue, "live": services.urls.live, "store": services.urls.store}
            pids = {"redis": services.redis.pid, "rabbitmq": services.rabbit.pid, "postgres": services.postgres.pid}
            found.append(Place(name=name, urls=urls, service_pids=pids))
        yield found


@contextmanager
def serving(place: Place, folder: Path, kind: str, max_sequences: int, **settings: object) -> Iterator[Started]:
    """A server of its own in this place; ``settings`` by their names with ``_`` for ``.``."""
    folder.mkdir(exist_ok=True)
    settings = {
        **place.urls,
        "engine_max_sequences": max_sequences,
        "admission_concurrent": 2000,
        "admission_backlog_total": 2000,
        **settings,
    }
    start = _fleet if place.name == "fleet" else _alone
    with start(place, folder, kind, settings) as started:
        yield started


@contextmanager
def _alone(place: Place, folder: Path, kind: str, settings: Mapping[str, object]) -> Iterator[Started]:
    """One process, ``axon serve``."""
    engine = engines.axon(kind=kind, dtype="auto")
    own = {f"AXON_{name.upper()}": str(value) for name, value in settings.items()}
    engine = replace(engine, environment={**engine.environment, **own})
    with running(engine.server(folder)) as server:
        server.wait()
        yield Started(
            endpoint=engine.endpoint(server.port, folder),
            pid=server.pid,
            metrics_port=server.metrics_port,
            roots={"serve": server.pid, **place.service_pids},
        )


@contextmanager
def _fleet(place: Place, folder: Path, kind: str, settings: Mapping[str, object]) -> Iterator[Started]:
    """One process of each role."""
    common = {
        "pepper": "0123456789abcdef0123456789abcdef",
        "namespace": f"path-{kind}",
        "engine_kind": kind,
        "engine_threads": engines.NUM_THREADS,
        "admission_requests_per_minute": 0,
        **settings,
    }
    made = Fleet(folder, common, models_dir=engines.MODEL_DIR.parent)
    try:
        members = [made.make(role).start(wait=False) for role in ("control", "worker", "gateway")]
        for member in members:
            member.wait_ready()
        gateway = made.gateways[0]
        model = "echo" if kind == "echo" else engines.MODEL_DIR.name
        yield Started(
            endpoint=Endpoint(port=gateway.port, model=model, headers=(("Authorization", f"Bearer {made.key}"),)),
            pid=gateway.pid,
            metrics_port=gateway.metrics_port,
            roots={**{member.role: member.pid for member in members}, **place.service_pids},
        )
    finally:
        made.stop()
