"""The compose stack: every file it mounts, every setting it names, every port it opens. Needs no Docker."""

import json
import re
import stat
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
import yaml

from axon.settings import describe, load
from tests.deploy import stack
from tests.journeys.server import REPOSITORY
from tests.services.process import free_port
from tests.services.require import find, require

ROLES = ("gateway", "worker", "control")
WITHOUT_HEALTH_CHECK = {"collector"}
"""Its image holds one program, which can ask nobody."""


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What make-env writes."""
    file = tmp_path_factory.mktemp("env") / ".env"
    subprocess.run([stack.FOLDER / "make-env", file], check=True, capture_output=True)
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


@pytest.fixture(scope="module")
def compose(secrets: dict[str, str]) -> dict[str, Any]:
    return stack.load(variables=secrets)


def test_it_is_valid_by_the_specifications_schema(compose: dict[str, Any]) -> None:
    schema = stack.schema()
    if schema is None:
        pytest.skip("the package with the Compose specification's schema cannot be downloaded")
    check = jsonschema.Draft7Validator(schema)
    for file in (compose, stack.load(stack.GPU)):
        stripped = {name: value for name, value in file.items() if name != "name"}  # newer than this schema
        assert [error.message for error in check.iter_errors(stripped)] == []
    wrong = {"services": {"gateway": {"image": "a", "helthcheck": {}}}}
    assert list(check.iter_errors(wrong))


def test_passwords_are_made_once_and_for_their_owner_alone(tmp_path: Path, secrets: dict[str, str]) -> None:
    file = tmp_path / ".env"
    for _ in range(2):
        subprocess.run([stack.FOLDER / "make-env", file], check=True, capture_output=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    own = dict(line.split("=", 1) for line in file.read_text().splitlines())
    assert own.keys() == secrets.keys()
    assert not set(own.values()) & set(secrets.values())
    assert all(re.fullmatch(r"[0-9a-f]{48}", value) for value in own.values())


@pytest.mark.parametrize(
    "name", ["REDIS_PASSWORD", "RABBITMQ_PASSWORD", "POSTGRES_PASSWORD", "GRAFANA_PASSWORD", "PEPPER"]
)
def test_without_a_password_it_does_not_start_and_says_what_to_run(secrets: dict[str, str], name: str) -> None:
    left = {key: value for key, value in secrets.items() if key != name}
    with pytest.raises(LookupError, match=f"{name}: run make-env"):
        stack.load(variables=left)


def test_it_has_everything(compose: dict[str, Any]) -> None:
    wanted = {"redis", "rabbitmq", "postgres", *ROLES, "edge", "prometheus", "alertmanager", "grafana", "collector"}
    assert compose["services"].keys() == wanted
    for role in ROLES:
        assert compose["services"][role]["deploy"]["replicas"] == 2
        assert compose["services"][role]["command"] == [role]


def test_every_mounted_file_is_there_and_every_volume_declared(compose: dict[str, Any]) -> None:
    seen = set()
    for service in compose["services"].values():
        for source, _, read_only in stack.mounts(service):
            if source.startswith("."):
                assert (stack.FOLDER / source).exists(), source
                assert read_only, source
            else:
                seen.add(source)
    assert seen == set(compose["volumes"])


def test_every_image_is_pinned_and_every_service_restarted_and_watched(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert re.fullmatch(r"[a-z0-9/.-]+:v?\d[\w.-]*", service["image"]), service["image"]
        assert service["restart"] == "unless-stopped", name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert ("healthcheck" in service) == (name not in WITHOUT_HEALTH_CHECK), name
        for needed, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert needed not in WITHOUT_HEALTH_CHECK


def test_ports_are_published_on_loopback_alone_and_services_not_at_all(compose: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert published.keys() == {"edge", "prometheus", "alertmanager", "grafana"}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)
    assert compose["networks"]["inside"]["internal"]
    for name in ("redis", "rabbitmq", "postgres", "collector"):
        assert compose["services"][name]["networks"] == ["inside"]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_no_rights_a_root_that_cannot_be_written_and_time_to_drain(
    compose: dict[str, Any], role: str
) -> None:
    service = compose["services"][role]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert "/tmp" in service["tmpfs"]
    written = [target for _, target, _ in stack.mounts(service)] + [each.split(":")[0] for each in service["tmpfs"]]
    assert "/var/lib/axon" in written
    assert service["build"]["target"] == service["image"].split("/")[1].split(":")[0]
    settings = load(environ=service["environment"]).settings
    grace = float(service["stop_grace_period"].removesuffix("s"))
    assert grace > settings.lifecycle.notice_s + settings.lifecycle.drain_s


@pytest.mark.parametrize("role", ROLES)
def test_a_role_starts_with_these_settings_as_far_as_the_code_can_tell(
    compose: dict[str, Any], secrets: dict[str, str], role: str
) -> None:
    environment = compose["services"][role]["environment"]
    known = {each.variable for each in describe()}
    assert set(environment) <= known
    settings = load(environ=environment).settings  # a wrong name or value raises
    assert settings.queue == f"amqp://axon:{secrets['RABBITMQ_PASSWORD']}@rabbitmq:5672/"
    assert settings.live == f"redis://:{secrets['REDIS_PASSWORD']}@redis:6379"
    assert settings.store == f"postgresql://axon:{secrets['POSTGRES_PASSWORD']}@postgres:5432/axon"
    assert (settings.pepper == secrets["PEPPER"]) == (role == "gateway")
    hosts = {urlsplit(value).hostname for value in environment.values() if "://" in value}
    assert hosts <= compose["services"].keys()


def test_the_gpu_file_changes_the_worker_alone() -> None:
    services = stack.load(stack.GPU)["services"]
    assert services.keys() == {"worker"}
    (device,) = services["worker"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    assert services["worker"]["build"] == {"target": "worker-cuda"}


def test_the_stacks_nginx_hands_over_what_the_edges_does_and_nothing_else() -> None:
    """tests/edge shows what these lines do: only a WebSocket at its path makes a gateway change the protocol."""
    edge = (REPOSITORY / "deploy" / "edge" / "nginx" / "nginx.conf.template").read_text("utf-8")
    own = (stack.FOLDER / "nginx.conf").read_text("utf-8")
    start, end = edge.index('    map "$server_protocol'), edge.index("    # Only these routes")
    assert edge[start:end] in own
    for line in ("proxy_set_header Connection $connection_to_gateway;", "proxy_set_header Upgrade $upgrade;"):
        assert line in edge
        assert line in own


def test_nginx_takes_the_edges_configuration(tmp_path: Path) -> None:
    require("nginx")
    text = (stack.FOLDER / "nginx.conf").read_text("utf-8")
    assert "proxy_pass http://$gateways" in text
    (config := tmp_path / "nginx.conf").write_text(
        text.replace("/tmp/", f"{tmp_path}/").replace("listen 8080", f"listen 127.0.0.1:{free_port()}")
    )
    ran = subprocess.run([find("nginx") or "", "-t", "-c", config, "-p", tmp_path], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_promtool_takes_the_configuration_with_our_rules(tmp_path: Path, compose: dict[str, Any]) -> None:
    require("promtool")
    for source, target, _ in stack.mounts(compose["services"]["prometheus"]):
        if source.startswith("."):
            (tmp_path / Path(target).name).write_bytes((stack.FOLDER / source).read_bytes())
    ran = subprocess.run(
        [find("promtool") or "", "check", "config", tmp_path / "prometheus.yaml"], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "rules found" in ran.stdout


def test_prometheus_looks_at_the_port_of_every_role_under_the_names_that_our_rules_know(
    compose: dict[str, Any],
) -> None:
    config = yaml.safe_load((stack.FOLDER / "prometheus.yaml").read_text("utf-8"))
    ours = yaml.safe_load(
        (REPOSITORY / "deploy" / "observability" / "prometheus" / "prometheus.yaml").read_text("utf-8")
    )
    jobs = {each["job_name"]: each for each in config["scrape_configs"]}
    assert {each["job_name"] for each in ours["scrape_configs"]} <= jobs.keys()
    defaults = {each.name: each.default for each in describe()}
    for role in ROLES:
        (found,) = jobs[f"axon-{role}"]["dns_sd_configs"]
        assert found["names"] == [role]
        assert found["port"] == int(defaults[f"{role}.metrics_port"])


def test_grafana_finds_every_dashboard_and_their_data_source(compose: dict[str, Any]) -> None:
    places = {target: source for source, target, _ in stack.mounts(compose["services"]["grafana"])}
    (provider,) = yaml.safe_load((stack.FOLDER / "grafana" / "dashboards.yaml").read_text("utf-8"))["providers"]
    folder = stack.FOLDER / places[provider["options"]["path"]]
    boards = [json.loads(file.read_text("utf-8")) for file in folder.glob("*.json")]
    assert len(boards) >= 7
    (source,) = yaml.safe_load((stack.FOLDER / "grafana" / "datasources.yaml").read_text("utf-8"))["datasources"]
    asked = {each["query"] for board in boards for each in board["templating"]["list"] if each["type"] == "datasource"}
    assert asked == {source["type"]}
    home = compose["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (folder / Path(home).name).exists()


def test_the_collector_listens_where_the_processes_send(compose: dict[str, Any]) -> None:
    config = yaml.safe_load((stack.FOLDER / "collector.yaml").read_text("utf-8"))
    endpoint = compose["services"]["gateway"]["environment"]["AXON_TRACES_ENDPOINT"]
    assert config["receivers"]["otlp"]["protocols"]["http"]["endpoint"].endswith(
        endpoint.removeprefix("http://collector")
    )
    for pipeline in config["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= config[kind].keys()
