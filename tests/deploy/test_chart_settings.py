"""Every setting in the chart exists in the code, and every setting that a cluster needs can be set."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from axon.settings import describe, load
from tests.deploy.chart import AWS, CHART, REPOSITORY, SETS, WATCHED, Workload, of_kind, rendered, workloads
from tests.deploy.test_workloads import is_ours


def _script() -> Any:
    """The script that writes the chart's schema, which is in no package."""
    spec = importlib.util.spec_from_file_location("chart_script", REPOSITORY / "scripts" / "chart.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()


@pytest.mark.parametrize("values", [*SETS, AWS])
def test_the_environment_of_every_pod_is_one_that_axon_starts_with(values: str, tmp_path: Path) -> None:
    for pod in workloads(rendered(values)):
        if not is_ours(pod):
            continue
        given = [env["name"] for env in pod.container["env"]]
        assert len(given) == len(set(given)), pod.name
        other = {env["name"]: "axon-0" for env in pod.container["env"] if "valueFrom" in env}
        files = {name: path for name, path in pod.env.items() if name.endswith("_FILE")}
        assert {*secret_files(pod)} == set(files.values())
        for path in files.values():
            (tmp_path / Path(path).name).write_text("amqp://axon")
        here = {name: str(tmp_path / Path(path).name) for name, path in files.items()}
        settings = load(environ={**pod.env, **other, **here}).settings  # refuses what does not exist
        assert settings.queue == "amqp://axon"
        assert settings.log.format == "json"
        if (role := pod.labels["axon.dev/role"]) == "backup":
            continue
        config: Any = {"gateway": settings.gateway, "worker": settings.worker, "control": settings.control}[role]
        ports = {port["name"]: port["containerPort"] for port in pod.container["ports"]}
        assert (config.metrics_host, config.metrics_port) == ("0.0.0.0", ports["metrics"])


@pytest.mark.parametrize("values", ["external-datastores", "eks-gpu", AWS])
def test_every_role_trusts_the_cas_that_are_named_and_no_role_names_others(values: str) -> None:
    ours = [pod for pod in workloads(rendered(values)) if is_ours(pod)]
    assert {pod.labels["axon.dev/role"] for pod in ours} >= {"gateway", "control", "worker"}
    assert any(pod.kind == "launched" for pod in ours) is (values == "eks-gpu")
    for pod in ours:
        assert pod.env["AXON_SERVICE_CA_FILE"] == "/etc/axon-secrets/ca.crt", pod.name
        (held,) = [source["configMap"] for source in sources(pod) if "configMap" in source]
        assert held["items"][0]["path"] == "ca.crt"
    assert not any("AXON_SERVICE_CA_FILE" in pod.env for pod in workloads(rendered("minimal")))


def sources(pod: Workload) -> list[Any]:
    """What the pod's files with URLs and certificates are made of."""
    (volume,) = [each for each in pod.spec["volumes"] if "projected" in each]
    return list(volume["projected"]["sources"])


def secret_files(pod: Workload) -> Iterator[str]:
    """The files that the pod's volumes have of Secrets and of the CAs."""
    mounts = {mount["name"]: mount["mountPath"] for mount in pod.container["volumeMounts"]}
    for source in sources(pod):
        held = source.get("secret") or source["configMap"]
        yield from (f"{mounts['secrets']}/{item['path']}" for item in held["items"])


def test_every_setting_can_be_given_or_is_given_by_the_chart() -> None:
    names = {each.name for each in describe()}
    assert set(SCRIPT.RESERVED) - names == set(), "settings that are no more"
    schema = json.loads((CHART / "values.schema.json").read_text())["definitions"]["settings"]["properties"]
    known = {
        f"{name}.{inner}" if "properties" in each else name
        for name, each in schema.items()
        for inner in each.get("properties", {"": ""})
    }
    assert known == {each.name for each in SCRIPT.settable()} == names - set(SCRIPT.RESERVED)


def test_what_the_script_writes_is_what_is_there() -> None:
    assert [path.name for path, text in SCRIPT.files().items() if path.read_text() != text] == []
    readme = (CHART / "README.md").read_text()
    for key in ("gateway.autoscaling.openStreams", "workerDefaults.keda.backlogTokens", "operators.valkey.password"):
        assert f"`{key}`" in readme


def test_a_setting_of_each_type_arrives_as_it_was_written() -> None:
    (gateway,) = [each for each in workloads(rendered("ha")) if each.labels["axon.dev/role"] == "gateway"]
    assert gateway.env["AXON_BATCHES_MAX_FILE_BYTES"] == "209715200", "no exponent"
    assert gateway.env["AXON_GRPC_ENABLED"] == "true"
    assert gateway.env["AXON_ADMISSION_BACKLOG_TOTAL"] == "4096"


@pytest.mark.parametrize("values", WATCHED)
def test_alerts_and_dashboards_are_those_of_the_repository(values: str) -> None:
    objects = rendered(values)
    maps = of_kind(objects, "ConfigMap")
    boards = {name: text for each in maps for name, text in each["data"].items() if name.endswith(".json")}
    ours = {path.name: path.read_text() for path in (REPOSITORY / "deploy/observability/grafana").glob("*.json")}
    assert {name: json.loads(text) for name, text in boards.items()} == {
        name: json.loads(text) for name, text in ours.items()
    }
    rules = yaml.safe_load((REPOSITORY / "deploy/observability/prometheus/rules.yaml").read_text())
    as_maps = [yaml.safe_load(each["data"]["rules.yaml"]) for each in maps if "rules.yaml" in each["data"]]
    as_objects = [each["spec"] for each in of_kind(objects, "PrometheusRule")]
    assert [*as_maps, *as_objects] == [rules]
