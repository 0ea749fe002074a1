"""A live fleet under load, with a real Prometheus and Alertmanager that watch it by our own rules and routes.

with watched_fleet(factor=1 / 120) as scene:
    scene.workers[0].kill()
    assert not scene.unfired("AxonNoReadyWorkers")
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from axon.monitoring.routes import routes
from axon.monitoring.rules import rule_file
from tests.fleet.fleet import ECHO, Fleet, shared_place
from tests.fleet.member import Member
from tests.fleet.versions import Registry
from tests.journeys.conftest import FEW_LANES, PATIENT
from tests.journeys.server import Server, running, wait_until
from tests.monitoring.load import Load
from tests.monitoring.repeated import repeated
from tests.monitoring.scripted import ScriptedWorker
from tests.services.alertmanager import AlertmanagerServer, NoticeReceiver
from tests.services.prometheus import PrometheusServer
from tests.services.redis import RedisServer
from tests.services.require import require

EVERY_S = 1.0
"""How often Prometheus scrapes: several times within the shortest window of the rules, 2.5 s."""
PATIENCE_S = 180.0
SETTINGS: dict[str, object] = {
    "dispatch_num_lanes": FEW_LANES,
    "engine_echo_step_s": 0.01,
    "worker_announce_s": 0.2,
    "control_look_s": 0.2,
    "control_launcher": "process",
    "admission_requests_per_minute": 1_000_000,
    "batches_poll_s": 0.2,
    "admission_slo_ttft_priority_s": 0,
    "admission_slo_ttft_default_s": 0,
    "admission_slo_ttft_flex_s": 0,
}

_VECTORS: dict[str, object] = {"engine_kind": "echo", "engine_echo_dimensions": 8, "model_name": "vectors"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a fault and a test need of it."""

    fleet: Fleet
    prometheus: PrometheusServer
    alertmanager: AlertmanagerServer
    pages: NoticeReceiver
    tickets: NoticeReceiver
    load: Load
    live: RedisServer
    registry: Registry
    scripted: ScriptedWorker
    vectors: Server
    """A server of a model that gives vectors, which a fleet learns of by its files only."""
    echo_workers: tuple[Member, ...]
    """The workers of the model that the load asks."""

    def firing(self) -> set[str]:
        """The names of the alerts that fire; of burn rates the fast ones, whose windows are half a minute and less."""
        found = self.prometheus.query('ALERTS{alertstate="firing", burn!~"medium|slow"}')
        return {each.labels["alertname"] for each in found}

    def unfired(self, *alerts: str) -> set[str]:
        """Waits until each of the alerts has fired once; returns those that have not in good time. It does not raise,
        so that what was broken is mended for the tests after this one."""
        missing = set(alerts)

        def fire() -> bool:
            missing.difference_update(self.firing())  # some are over before the others begin
            return not missing

        with suppress(AssertionError):
            wait_until(fire, "they fire", PATIENCE_S)
        return missing

    def wait_quiet(self, *alerts: str) -> None:
        wait_until(lambda: not set(alerts) & self.firing(), f"{', '.join(alerts)} stop", PATIENCE_S)

    def scrape_all(self) -> None:
        """Everything that runs or has run, by its role."""
        members = [(each.metrics_port, each.role, each.name, "fleet") for each in self.fleet.members]
        self.prometheus.scrape_groups(
            [
                {"targets": [f"127.0.0.1:{port}"], "labels": {"role": role, "member": name, "namespace": namespace}}
                for port, role, name, namespace in [
                    *members,
                    (self.scripted.port, "worker", "scripted", "fleet"),
                    (urlsplit(self.vectors.metrics_url).port, "server", "vectors", "vectors"),
                ]
            ]
        )


@contextmanager
def watched_fleet(*, factor: float) -> Iterator[Scene]:
    """A gateway, two workers and a control over services of which Redis is its own, watched by rules whose times are
    multiplied by the factor."""
    require("prometheus", "prometheus-alertmanager", "redis-server")
    with tempfile.TemporaryDirectory(prefix="axon-watched-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        live = RedisServer(folder / "redis")
        stack.callback(live.kill)
        live.start()
        place = shared_place() | {"live": live.url}
        fleet = Fleet(folder, place, **{**ECHO, **PATIENT, **SETTINGS})
        stack.callback(fleet.stop)
        fleet.start(gateways=1, workers=2, controls=1)
        pages, tickets = stack.enter_context(NoticeReceiver()), stack.enter_context(NoticeReceiver())
        routing = routes(page_url=pages.url, ticket_url=tickets.url, factor=factor)
        alertmanager = AlertmanagerServer(folder / "alertmanager", json.dumps(routing))
        stack.callback(alertmanager.kill)
        alertmanager.start()
        prometheus = PrometheusServer(
            folder / "prometheus",
            rules=[json.dumps(rule_file(factor))],
            every_s=EVERY_S,
            alertmanager_port=alertmanager.port,
        )
        stack.callback(prometheus.kill)
        prometheus.start()
        registry = stack.enter_context(Registry(fleet))
        vectors = stack.enter_context(running(folder / "vectors", **_VECTORS))
        stack.enter_context(repeated(lambda: _embed(vectors), every_s=1.0))
        load = stack.enter_context(Load(fleet.gateways[0].url, fleet.key))
        scene = Scene(
            fleet=fleet,
            prometheus=prometheus,
            alertmanager=alertmanager,
            pages=pages,
            tickets=tickets,
            load=load,
            live=live,
            registry=registry,
            scripted=stack.enter_context(ScriptedWorker()),
            vectors=vectors,
            echo_workers=tuple(fleet.workers),
        )
        scene.scrape_all()
        wait_until(lambda: prometheus.up() == len(fleet.members) + 2, "all processes are scraped", PATIENCE_S)
        yield scene


def _embed(server: Server) -> None:
    with server.client() as http:
        http.post("/v1/embeddings", json={"model": "vectors", "input": ["one", "two"]})
